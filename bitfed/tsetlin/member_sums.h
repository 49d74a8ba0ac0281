#pragma once

#include <memory>
#include <vector>

#include "bitfed/data/samples.h"
#include "bitfed/tsetlin/machine/compiled_clauses.h"

namespace bitfed {

// The clamped class sums of all members of a model, from raw samples. Each distinct pair of booleanizer and
// patch shape is computed once for all members that share it. Reusable but not thread-safe: one per thread.
// All memory is allocated on construction.
class MemberSums {
 public:
  // The members must take samples of the same shape, and fit their booleanizers.
  MemberSums(const std::vector<TsetlinMember>& members, size_t class_count);
  ~MemberSums();
  MemberSums(MemberSums&&) noexcept;

  // One for another thread; shares the clauses. May be called while this one is used.
  MemberSums another() const { return MemberSums(plan_); }

  const SampleShape& shape() const;
  size_t block() const;  // the number of samples per call that is fastest

  // Writes the sums of member m, [sample][class], to sums + m * stride.
  void fill(const Samples& samples, float* sums, size_t stride);

 private:
  struct Plan;
  class Workspace;
  explicit MemberSums(std::shared_ptr<const Plan> plan);
  static std::shared_ptr<const Plan> make_plan(const std::vector<TsetlinMember>& members, size_t class_count);

  std::shared_ptr<const Plan> plan_;
  std::vector<Workspace> workspaces_;  // one per pair of booleanizer and patch shape
};

}  // namespace bitfed
