#pragma once

#include "bitfed/run/summary.h"

namespace bitfed {

// A summary in which every field has a value of its own.
inline RunSummary some_summary() {
  RunSummary s;
  s.name = "a run";
  s.method = "fedtm";
  s.model = "ctm";
  s.dataset = "mnist";
  s.partition = "IID, 2 clients";
  s.clients = 2;
  s.rounds = 3;
  s.seed = 4;
  s.version = "1.2.3";
  s.threads = 5;
  s.ranks = 37;
  s.hosts = {"node1", "node2"};
  s.isa = "scalar";
  s.device = "a GPU";
  s.machine = "a machine";
  s.accuracy = 0.5;
  s.validation_accuracy = 0.25;
  s.binarized_accuracy = 0.125;
  s.local_accuracy_mean = 0.625;
  s.f1_micro = 0.0625;
  s.f1_macro = 0.03125;
  s.balanced_accuracy = 0.015625;
  s.upload_bytes_per_client = 6;
  s.upload_bytes_raw = 7;
  s.download_bytes_per_client = 8;
  s.total_upload_bytes = 9;
  s.exchanges = 2;
  s.preparation_upload_bytes_per_client = 5;
  s.airtime = {{300, 0.75, 1.5}, {37500, 2.5, 3.5}};
  s.model_bytes = 10;
  s.flops = 11;
  s.binary_ops = uint64_t{1} << 40;
  s.model_bytes_paper = 12;
  s.flops_paper = 13;
  s.train_seconds = 14.5;
  s.train_samples = 15;
  s.train_samples_per_second = 16.5;
  s.aggregation_seconds = 17.5;
  s.evaluation_seconds = 18.5;
  s.wall_seconds = 19.5;
  s.peak_rss_bytes = 20;
  s.model_sha256 = "0a1b";
  s.model_round = 21;
  s.reused_uploads = 22;
  s.notes = {"one", "two"};
  s.class_names = {"cat", "dog"};
  s.client_class_counts = {{23, 24}, {25, 26}};
  s.confusion_matrix = {{27, 28}, {29, 30}};
  s.client_results = {{31, "ann", 32, 33, 0.375, 0.875}, {34, "bob", 35, 36, 0.1, 0.2}};
  return s;
}

}  // namespace bitfed
