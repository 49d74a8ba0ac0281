#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/run/run_folder.h"

namespace bitfed {

enum class Better { kHigher, kLower };

// Where a column is shown. A terminal has room for few.
enum class Shown { kAlways, kWhereKnown, kOnPageWhereKnown };

// One column of the table that compares runs.
struct ComparedQuantity {
  std::string name;
  std::string unit;  // of the exact value: "bytes", "seconds", "" for a fraction
  Better better = Better::kLower;
  std::optional<double> (*value)(const RunFolder&);
  std::string (*text)(double);  // for people
  Shown shown = Shown::kAlways;
  // Says nothing of a run that reused another's uploads: such a run is never best.
  bool is_of_trained = false;
};

// All columns, in order.
const std::vector<ComparedQuantity>& compared_quantities();

// The columns to show for these runs on a page, or in a terminal.
std::vector<ComparedQuantity> page_quantities(const std::vector<RunFolder>& runs);
std::vector<ComparedQuantity> terminal_quantities(const std::vector<RunFolder>& runs);

// The indices of the runs with the best value, ascending: several where they share it, none where no run has
// one that counts.
std::vector<size_t> best_runs(const std::vector<RunFolder>& runs, const ComparedQuantity& quantity);

// A label for each run, all different: its name; where several share the name, with its method, its seed or
// else its folder.
std::vector<std::string> run_labels(const std::vector<RunFolder>& runs);

// Runs of one recipe that differ in their seed alone.
struct SeedGroup {
  std::string label;
  std::vector<size_t> runs;  // indices, in the order given
};

// The groups of at least two seeds. Two runs of the same seed are not counted twice: the first counts.
std::vector<SeedGroup> seed_groups(const std::vector<RunFolder>& runs);

// Mean and sample standard deviation (n - 1) over the runs that have the value; empty: fewer than two.
struct Spread {
  double mean = 0;
  double deviation = 0;
  size_t count = 0;
};
std::optional<Spread> spread_of(const std::vector<double>& values);

// "97.10 % ± 0.42 %", of the runs of a group; "–" where fewer than two have the value.
std::string spread_text(const std::vector<RunFolder>& runs, const SeedGroup& group,
                        const ComparedQuantity& quantity);

// The comparison as lines with aligned columns, for a terminal.
std::string comparison_text(const std::vector<RunFolder>& runs);

}  // namespace bitfed
