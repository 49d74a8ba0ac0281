#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// How training samples are assigned to clients.
struct PartitionSpec {
  // "iid"                 a random permutation split into equal parts
  // "dirichlet"           per class a Dirichlet(alpha) draw over clients, skipping clients that already
  //                       hold their N / clients, redrawn until each has at least `minimum` samples
  // "dirichlet-balanced"  the draw of the FedTMOS paper: clients end up nearly equal in size
  // "label-subset"        `labels` random labels per client, each label split evenly among its holders
  // "classes"             S(beta): client i has class i and labels - 1 random others
  // "column"              by the data's own groups (a person, a device): one client each
  std::string kind = "iid";
  uint32_t clients = 10;
  double alpha = 0.1;
  uint32_t labels = 2;
  uint32_t minimum = 10;
  // classes, dirichlet-balanced: "paper" is the FedTMOS authors' own split; for Dirichlet, the split that
  // their generator draws from the seed (they use 0, 20 and 24)
  std::string allotment = "random";
};

// client -> indices of its training samples, ascending.
using Partition = std::vector<std::vector<uint32_t>>;

PartitionSpec read_partition(const Config& config);

// A pure function of (labels or groups, spec, seed). An input_error where the spec cannot be met: more
// clients than samples, a client without samples, a column partition of data without groups or with only one
// group.
Partition make_partition(const Dataset& train, const PartitionSpec& spec, uint64_t seed);

// Samples per class of every client.
std::vector<std::vector<uint32_t>> class_counts(const Dataset& train, const Partition& partition);

// "Dir(0.1), 10 clients": for tables and titles.
std::string describe(const PartitionSpec& spec);

}  // namespace bitfed
