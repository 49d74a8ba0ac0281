#include "bitfed/tsetlin/tsetlin_model.h"

#include <algorithm>
#include <span>

#include "bitfed/base/error.h"
#include "bitfed/base/min_times.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/tsetlin/member_sums.h"

namespace bitfed {
namespace {

constexpr size_t kMaxBitmapBytes = size_t{1} << 30;

// Adds the scores of one member, from its sums, to `scores`.
void add_scores(float scale, std::span<const float> sums, float* scores) {
  if (scale == 0 && !sums.empty()) {
    const auto [min, max] = std::minmax_element(sums.begin(), sums.end());
    scale = std::max(1.0f, *max - *min);
  }
  for (size_t i = 0; i < sums.size(); ++i) scores[i] += sums[i] / scale;
}

class TsetlinPredictor : public Predictor {
 public:
  // Where some scale is 0, the samples of a call form one block, and predicting allocates memory for their
  // sums.
  TsetlinPredictor(MemberSums member_sums, std::vector<float> scales, size_t class_count)
      : Predictor(
            member_sums.shape(), class_count,
            std::find(scales.begin(), scales.end(), 0.0f) != scales.end() ? kTogether : member_sums.block()),
        member_sums_(std::move(member_sums)),
        scales_(std::move(scales)),
        sums_(block() == kTogether ? 0 : scales_.size() * block() * class_count) {}

  std::unique_ptr<Predictor> another() const override {
    return std::make_unique<TsetlinPredictor>(member_sums_.another(), scales_, class_count());
  }

 private:
  void predict_block(const Samples& samples, float* scores) override {
    const size_t count = samples.count * class_count();
    if (block() == kTogether) sums_.resize(scales_.size() * count);
    member_sums_.fill(samples, sums_.data(), count);
    std::fill_n(scores, count, 0.0f);
    for (size_t i = 0; i < scales_.size(); ++i)
      add_scores(scales_[i], {sums_.data() + i * count, count}, scores);
  }

  MemberSums member_sums_;
  std::vector<float> scales_;
  std::vector<float> sums_;  // [member][sample][class]
};

// A file of a few bytes must not make the program allocate gigabytes.
void check_size(const PatchShape& shape, const std::string& name) {
  const size_t bytes = (shape.literals() + 1) * blocks_for(shape.patches()) * kBlockWords * sizeof(uint64_t);
  if (bytes > kMaxBitmapBytes) {
    throw input_error("{}: {} literals at {} patches take {} bytes, expected at most {}", name,
                      shape.literals(), shape.patches(), bytes, kMaxBitmapBytes);
  }
}

void check_member(const TsetlinMember& member, const Dataset& dataset) {
  const size_t height = dataset.is_table() ? 1 : dataset.height;
  const size_t width = dataset.is_table() ? 1 : dataset.width;
  const size_t planes = plane_count(member.booleanizer, dataset);
  const PatchShape& shape = member.shape;
  if (height != shape.height || width != shape.width || planes != shape.planes) {
    throw input_error("{}: samples of {} x {} with {} bits per pixel, but the model takes {} x {} with {}",
                      dataset.name, height, width, planes, shape.height, shape.width, shape.planes);
  }
  check_size(shape, dataset.name);
}

}  // namespace

void TsetlinModel::check_fits(const Dataset& dataset) const {
  for (const TsetlinMember& member : members_) check_member(member, dataset);
}

std::unique_ptr<Predictor> TsetlinModel::predictor() const {
  check_fits(empty_dataset("samples", member_input(members_.front())));
  std::vector<float> scales;
  for (const TsetlinMember& member : members_) scales.push_back(member.scale);
  return std::make_unique<TsetlinPredictor>(MemberSums(members_, class_count_), std::move(scales),
                                            class_count_);
}

bool TsetlinModel::depends_on_the_call() const {
  return std::any_of(members_.begin(), members_.end(), [](const TsetlinMember& m) { return m.scale == 0; });
}

std::vector<float> TsetlinModel::scores(const Dataset& dataset, ThreadPool& pool) const {
  if (!depends_on_the_call()) return Model::scores(dataset, pool);
  check_fits(dataset);
  const size_t count = dataset.size() * class_count_;
  const Samples samples = samples_of(dataset);
  const MemberSums member_sums(members_, class_count_);
  std::vector<float> sums(members_.size() * count);
  pool.for_ranges(dataset.size(), prediction_share(dataset.size(), pool), [&](size_t begin, size_t end) {
    member_sums.another().fill(samples.part(member_sums.shape(), begin, end - begin),
                               &sums[begin * class_count_], count);
  });
  std::vector<float> result(count);
  for (size_t i = 0; i < members_.size(); ++i)
    add_scores(members_[i].scale, {sums.data() + i * count, count}, result.data());
  return result;
}

SampleShape member_input(const TsetlinMember& member) {
  const BooleanizerSpec& spec = member.booleanizer;
  if (spec.kind == "quantile") return {.columns = spec.cuts.size()};
  const size_t planes = spec.kind == "colour-thermometer" ? static_cast<size_t>(spec.levels) : 1;
  return {
      .height = member.shape.height, .width = member.shape.width, .channels = member.shape.planes / planes};
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

std::vector<double> measure_members(const TsetlinModel& model) {
  constexpr size_t kSamples = 64;
  const SampleShape shape = member_input(model.members().front());
  std::vector<uint8_t> pixels(kSamples * shape.count());
  std::vector<float> values(pixels.size());
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(i * 37);
    values[i] = static_cast<float>(pixels[i]) / 255.0f;
  }
  Samples samples{pixels.data(), nullptr, kSamples};
  if (shape.is_table()) samples = {nullptr, values.data(), kSamples};
  std::vector<float> scores(kSamples * model.class_count());
  std::vector<double> seconds;
  for (const TsetlinMember& member : model.members()) {
    const auto predictor = TsetlinModel(model.class_count(), {member}).predictor();
    MinTimes times;
    for (int turn = 0; turn < MinTimes::kRepetitions; ++turn) {
      times.begin();
      predictor->predict(samples, scores.data());
      times.finished(0);
    }
    seconds.push_back(times.seconds()[0] / kSamples);
  }
  return seconds;
}

}  // namespace bitfed
