#include "bitfed/tsetlin/tsetlin_model.h"

#include <algorithm>
#include <numeric>

#include "bitfed/tsetlin/compiled_clauses.h"

namespace bitfed {
namespace {

constexpr size_t kChunk = 256;  // samples booleanized and predicted at a time by one thread

// Predicts samples [begin, end): each distinct booleanizing and patch shape is done once for all the
// members that share it.
class ChunkPredictor {
 public:
  ChunkPredictor(const TsetlinModel& model, const Dataset& dataset) : model_(model), dataset_(dataset) {
    for (const TsetlinMember& member : model.members()) compiled_.emplace_back(member, model.class_count());
  }

  void predict(size_t begin, size_t end, float* scores) {
    std::vector<uint32_t> indices(end - begin);
    std::iota(indices.begin(), indices.end(), static_cast<uint32_t>(begin));
    const Dataset chunk = subset(dataset_, indices);
    std::fill_n(scores, indices.size() * model_.class_count(), 0.0f);
    std::vector<bool> done(model_.members().size());
    for (size_t first = 0; first < done.size(); ++first) {
      if (!done[first]) predict_like(first, chunk, scores, done);
    }
  }

 private:
  // All members that look at the samples as member `first` does.
  void predict_like(size_t first, const Dataset& chunk, float* scores, std::vector<bool>& done) {
    const std::vector<TsetlinMember>& members = model_.members();
    const BitImages images = booleanize(members[first].booleanizer, chunk);
    PatchLiterals patches(members[first].shape);
    std::vector<size_t> alike;
    for (size_t i = first; i < members.size(); ++i) {
      if (members[i].booleanizer == members[first].booleanizer && members[i].shape == members[first].shape) {
        alike.push_back(i);
        done[i] = true;
      }
    }
    const size_t classes = model_.class_count();
    std::vector<int64_t> sums(classes);
    for (size_t sample = 0; sample < images.count; ++sample) {
      patches.load(images, sample);
      for (const size_t i : alike) {
        std::fill(sums.begin(), sums.end(), 0);
        compiled_[i].add_sums(patches, sums.data());
        for (size_t label = 0; label < classes; ++label) {
          int64_t sum = sums[label];
          if (members[i].clamp > 0) sum = std::clamp<int64_t>(sum, -members[i].clamp, members[i].clamp);
          scores[sample * classes + label] += static_cast<float>(sum) / members[i].scale;
        }
      }
    }
  }

  const TsetlinModel& model_;
  const Dataset& dataset_;
  std::vector<CompiledClauses> compiled_;
};

}  // namespace

std::vector<float> TsetlinModel::scores(const Dataset& dataset, ThreadPool& pool) const {
  std::vector<float> result(dataset.size() * class_count_);
  pool.for_ranges(dataset.size(), std::max<size_t>(kChunk, dataset.size() / (4 * pool.size()) + 1),
                  [&](size_t begin, size_t end) {
                    ChunkPredictor predictor(*this, dataset);
                    for (size_t first = begin; first < end; first += kChunk) {
                      predictor.predict(first, std::min(end, first + kChunk), result.data() + first * class_count_);
                    }
                  });
  return result;
}

ModelCosts TsetlinModel::costs() const {
  ModelCosts costs;
  for (const TsetlinMember& member : members_) {
    const size_t literals = CompiledClauses(member, class_count_).literal_count();
    costs.binary_ops += literals * member.shape.patches();
    costs.flops += class_count_;  // the division of each sum
  }
  costs.bytes = state().tensor_bytes();
  return costs;
}

}  // namespace bitfed
