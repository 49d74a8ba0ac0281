#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/data/booleanize/booleanizer.h"
#include "bitfed/model/model.h"
#include "bitfed/tsetlin/machine/machine.h"
#include "bitfed/tsetlin/machine/patches.h"

namespace bitfed {

// One machine of a model in prediction: per class, clauses with signed weights. A clause fires if all its
// literals hold in at least one patch; an empty clause never fires. A class's sum is bias + the weights of
// its firing clauses, clamped to ±clamp (0: not clamped), and its score is sum / scale. All but the last
// division is exact integer arithmetic. A scale of 0 means the span (largest - smallest sum) over all samples
// and classes predicted together, as in the FedTMOS paper.
struct TsetlinMember {
  BooleanizerSpec booleanizer;
  PatchShape shape;
  size_t clauses = 0;            // per class; rows of unused clauses are empty with weight 0
  BitMatrix actions;             // row class * clauses + clause, a column per literal: 1 = included
  std::vector<int32_t> weights;  // per row; negative: votes against the class
  std::vector<int32_t> bias;     // per class
  int32_t clamp = 0;
  float scale = 1;
};

// The current state of a machine in training as a member: clamped to ±T, scaled by T.
TsetlinMember member_of(const TsetlinMachine& machine, const BooleanizerSpec& booleanizer);

// The total number of literals in clauses with a nonzero weight.
uint64_t included_literals(const TsetlinMember& member);

// The shape of the samples that the member takes.
SampleShape member_input(const TsetlinMember& member);

// A sum of machines: a single one, a composite of specialists, or the aggregate of many clients.
class TsetlinModel : public Model {
 public:
  TsetlinModel(size_t class_count, std::vector<TsetlinMember> members)
      : class_count_(class_count), members_(std::move(members)) {}

  const std::vector<TsetlinMember>& members() const { return members_; }
  size_t class_count() const override { return class_count_; }
  std::vector<float> scores(const Dataset& dataset, ThreadPool& pool) const override;
  void check_fits(const Dataset& dataset) const override;
  std::unique_ptr<Predictor> predictor() const override;
  State state() const override;
  ModelCosts costs() const override;

 private:
  bool depends_on_the_call() const;  // some member's scale is 0

  size_t class_count_;
  std::vector<TsetlinMember> members_;
};

// Measures the seconds per sample of each member alone.
std::vector<double> measure_members(const TsetlinModel& model);

// The inverse of state(), for untrusted input.
std::unique_ptr<TsetlinModel> tsetlin_model_from_state(const State& state, std::string_view source);

}  // namespace bitfed
