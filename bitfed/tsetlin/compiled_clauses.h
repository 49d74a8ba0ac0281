#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/tsetlin/patches.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {

// A member of a model in the form that predicts fastest: only clauses that can fire and matter, each as
// the list of its included literals.
class CompiledClauses {
 public:
  CompiledClauses(const TsetlinMember& member, size_t class_count);

  // Adds what each class's firing clauses weigh, and the bias, to `sums` (class_count of them): the
  // sums of the loaded image, unclamped.
  void add_sums(const PatchLiterals& image, int64_t* sums);

  uint64_t literal_count() const { return literals_.size(); }  // included, in all clauses together

 private:
  struct Clause {
    uint32_t first;  // its literals: literals_[first, first + count)
    uint16_t count;
    uint16_t label;
    int32_t weight;
  };

  bool fires(const Clause& clause, const PatchLiterals& image);

  std::vector<Clause> clauses_;
  std::vector<uint16_t> literals_;
  std::vector<int32_t> bias_;
  AlignedVector<uint64_t> match_;     // convolutional: where the clause in hand matches
  std::vector<uint64_t> flat_image_;  // flat: the image's literals
};

}  // namespace bitfed
