#include "bitfed/tsetlin/tsetlin_model.h"

#include <algorithm>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/tsetlin/compiled_clauses.h"

namespace bitfed {
namespace {

constexpr size_t kChunk = 256;  // samples booleanized and predicted at a time by one thread

// Class sums of every member, clamped: [member][sample][class].
using Sums = std::vector<std::vector<float>>;

// Fills in the sums of some samples. Each distinct booleanizing and patch shape is done once for all
// the members that share it.
class ChunkPredictor {
 public:
  ChunkPredictor(const TsetlinModel& model, const Dataset& dataset) : model_(model), dataset_(dataset) {
    for (const TsetlinMember& member : model.members()) compiled_.emplace_back(member, model.class_count());
  }

  void predict(size_t begin, size_t end, Sums* sums) {
    std::vector<uint32_t> indices(end - begin);
    std::iota(indices.begin(), indices.end(), static_cast<uint32_t>(begin));
    const Dataset chunk = subset(dataset_, indices);
    std::vector<bool> done(model_.members().size());
    for (size_t first = 0; first < done.size(); ++first) {
      if (!done[first]) predict_like(first, chunk, begin, sums, done);
    }
  }

 private:
  // All members that look at the samples as member `first` does.
  void predict_like(size_t first, const Dataset& chunk, size_t begin, Sums* sums, std::vector<bool>& done) {
    const std::vector<TsetlinMember>& members = model_.members();
    std::vector<size_t> alike;
    for (size_t i = first; i < members.size(); ++i) {
      if (members[i].booleanizer == members[first].booleanizer && members[i].shape == members[first].shape) {
        alike.push_back(i);
        done[i] = true;
      }
    }
    const BitImages images = booleanize(members[first].booleanizer, chunk);
    const size_t classes = model_.class_count();
    std::vector<CompiledClauses*> sets;
    for (const size_t i : alike) sets.push_back(&compiled_[i]);
    const std::vector<std::vector<int64_t>> exact = class_sums(images, sets);
    for (size_t k = 0; k < alike.size(); ++k) {
      const int64_t clamp = members[alike[k]].clamp;
      const int64_t limit = clamp > 0 ? clamp : INT64_MAX;
      float* out = (*sums)[alike[k]].data() + begin * classes;
      for (const int64_t sum : exact[k]) *out++ = static_cast<float>(std::clamp(sum, -limit, limit));
    }
  }

  const TsetlinModel& model_;
  const Dataset& dataset_;
  std::vector<CompiledClauses> compiled_;
};

float scale_of(const TsetlinMember& member, const std::vector<float>& sums) {
  if (member.scale > 0 || sums.empty()) return member.scale;
  const auto [least, most] = std::minmax_element(sums.begin(), sums.end());
  return std::max(1.0f, *most - *least);
}

void check_fits(const TsetlinMember& member, const Dataset& dataset) {
  const size_t height = dataset.is_table() ? 1 : dataset.height;
  const size_t width = dataset.is_table() ? 1 : dataset.width;
  const size_t planes = plane_count(member.booleanizer, dataset);
  const PatchShape& shape = member.shape;
  if (height != shape.height || width != shape.width || planes != shape.planes) {
    throw input_error("{}: samples of {} x {} with {} bits a place, but the model takes {} x {} with {}",
                      dataset.name, height, width, planes, shape.height, shape.width, shape.planes);
  }
}

}  // namespace

std::vector<float> TsetlinModel::scores(const Dataset& dataset, ThreadPool& pool) const {
  for (const TsetlinMember& member : members_) check_fits(member, dataset);
  Sums sums(members_.size(), std::vector<float>(dataset.size() * class_count_));
  const size_t share = std::max<size_t>(kChunk, dataset.size() / (4 * pool.size()) + 1);
  pool.for_ranges(dataset.size(), share, [&](size_t begin, size_t end) {
    ChunkPredictor predictor(*this, dataset);
    for (size_t first = begin; first < end; first += kChunk) {
      predictor.predict(first, std::min(end, first + kChunk), &sums);
    }
  });
  std::vector<float> result(dataset.size() * class_count_);
  for (size_t i = 0; i < members_.size(); ++i) {
    const float scale = scale_of(members_[i], sums[i]);
    for (size_t k = 0; k < result.size(); ++k) result[k] += sums[i][k] / scale;
  }
  return result;
}

TsetlinMember member_of(const TsetlinMachine& machine, const BooleanizerSpec& booleanizer) {
  TsetlinMember member;
  member.booleanizer = booleanizer;
  member.shape = machine.shape();
  member.clauses = machine.options().clauses;
  member.actions = machine.actions();
  member.bias.resize(machine.class_count());
  member.clamp = machine.options().threshold;
  member.scale = static_cast<float>(machine.options().threshold);
  member.weights = machine.votes();
  return member;
}

uint64_t included_literals(const TsetlinMember& member) {
  uint64_t count = 0;
  for (size_t row = 0; row < member.weights.size(); ++row) {
    if (member.weights[row] == 0) continue;
    count += kernels().count_bits(member.actions.row(row), member.actions.stride());
  }
  return count;
}

ModelCosts TsetlinModel::costs() const {
  ModelCosts costs;
  for (const TsetlinMember& member : members_) {
    costs.binary_ops += included_literals(member) * member.shape.patches();
    costs.flops += class_count_;  // the division of each sum
  }
  costs.bytes = state().tensor_bytes();
  return costs;
}

}  // namespace bitfed
