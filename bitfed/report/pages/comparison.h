#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/run/run_folder.h"

namespace bitfed {

enum class Better { kHigher, kLower };

// One column of the table that compares runs.
struct ComparedQuantity {
  std::string name;
  std::string unit;  // of the exact value: "bytes", "seconds", "" for a fraction
  Better better = Better::kLower;
  std::optional<double> (*value)(const RunFolder&);
  std::string (*text)(double);  // for people
  bool is_rare = false;         // left out where no run has it
};

// All columns, in order.
const std::vector<ComparedQuantity>& compared_quantities();

// The columns to show for these runs: rare ones only where a run has them.
std::vector<ComparedQuantity> compared_quantities(const std::vector<RunFolder>& runs);

// The indices of the runs with the best value, ascending: several where they share it, none where no run has
// one.
std::vector<size_t> best_runs(const std::vector<RunFolder>& runs, const ComparedQuantity& quantity);

// A label for each run: its name; where several share the name, with its method or else its folder.
std::vector<std::string> run_labels(const std::vector<RunFolder>& runs);

// The comparison as lines with aligned columns, for a terminal.
std::string comparison_text(const std::vector<RunFolder>& runs);

}  // namespace bitfed
