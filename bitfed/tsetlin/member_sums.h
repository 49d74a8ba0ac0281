#pragma once

#include <memory>
#include <vector>

#include "bitfed/data/samples.h"
#include "bitfed/tsetlin/machine/compiled_clauses.h"

namespace bitfed {

// The clamped class sums of all members of a model, from raw samples. Each distinct booleanizing and patch
// shape is done once for all the members that share it. One per thread, used again and again: all memory is
// taken when it is made.
class MemberSums {
 public:
  // The members take samples of the same shape and go together with their booleanizers.
  MemberSums(const std::vector<TsetlinMember>& members, size_t class_count);
  ~MemberSums();
  MemberSums(MemberSums&&) noexcept;

  // One for one more thread, which shares the clauses; may be asked for while this is used.
  MemberSums another() const { return MemberSums(plan_); }

  const SampleShape& shape() const;
  size_t block() const;  // samples that are quickest together

  // Of member m from sums + m * stride on: [sample][class].
  void fill(const Samples& samples, float* sums, size_t stride);

 private:
  struct Plan;
  class Look;
  explicit MemberSums(std::shared_ptr<const Plan> plan);
  static std::shared_ptr<const Plan> make_plan(const std::vector<TsetlinMember>& members, size_t class_count);

  std::shared_ptr<const Plan> plan_;
  std::vector<Look> looks_;
};

}  // namespace bitfed
