#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/run/run_folder.h"

namespace bitfed {

enum class Better { kHigher, kLower };

// One column of the table that sets runs side by side.
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

// Those to show of these runs.
std::vector<ComparedQuantity> compared_quantities(const std::vector<RunFolder>& runs);

// The runs that are best in this quantity, in order: several where they share it, none where no run has it.
std::vector<size_t> best_runs(const std::vector<RunFolder>& runs, const ComparedQuantity& quantity);

// What to call each run: its name; with its method or, failing that, its folder where several share the name.
std::vector<std::string> run_labels(const std::vector<RunFolder>& runs);

// The comparison as lines with aligned columns, for a terminal.
std::string comparison_text(const std::vector<RunFolder>& runs);

}  // namespace bitfed
