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

// One machine of a model as it predicts: per class, clauses with their signed weights. An empty clause
// is silent; a clause fires if all its literals hold in at least one patch. The class's sum is
// bias + the weights of the clauses that fire, clamped to ±clamp (0: not clamped), and its score
// sum / scale. Everything but the last division is exact in integers. A scale of 0 stands for the span
// (largest - smallest sum) over all samples and classes predicted together, as in the FedTMOS paper.
struct TsetlinMember {
  BooleanizerSpec booleanizer;
  PatchShape shape;
  size_t clauses = 0;            // a class; rows of unused clauses are empty with weight 0
  BitMatrix actions;             // row class * clauses + clause, a column a literal: 1 = included
  std::vector<int32_t> weights;  // the same rows; negative: votes against
  std::vector<int32_t> bias;     // a class
  int32_t clamp = 0;
  float scale = 1;
};

// The member that a machine in training would be as it stands: clamped to ±T, scaled by T.
TsetlinMember member_of(const TsetlinMachine& machine, const BooleanizerSpec& booleanizer);

// Literals that clauses of some weight demand, all together.
uint64_t included_literals(const TsetlinMember& member);

// What the member takes for a sample.
SampleShape member_input(const TsetlinMember& member);

// A sum of machines: a plain one, a composite of specialists, or what a server made of many clients.
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

// The seconds of a sample that each member takes by itself, measured just now.
std::vector<double> measure_members(const TsetlinModel& model);

// The inverse of state(); trusts nothing.
std::unique_ptr<TsetlinModel> tsetlin_model_from_state(const State& state, std::string_view source);

}  // namespace bitfed
