#include "bitfed/cuda/cohort_network.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "bitfed/cuda/cohort_builder.h"
#include "bitfed/nn/layers/dropout.h"
#include "bitfed/zoo/architectures/architectures.h"

namespace bitfed::cuda {
namespace {

constexpr size_t kTurns = 3;
constexpr size_t kValues = 4;              // clients' parameters on their way to the host at the same time
constexpr uint32_t kSearchIterations = 3;  // BinaryConvolution::kRotationIterations

// body(where it begins) for every row that is no padding.
template <typename Body>
void for_used_rows(const Parameter& parameter, Body body) {
  for (size_t row = 0; row < parameter.values.rows; ++row) {
    if (row % parameter.groups.size < parameter.groups.used) body(row * parameter.values.stride);
  }
}

std::vector<float> without_padding(const Parameter& parameter, const float* padded) {
  std::vector<float> values;
  values.reserve(parameter.count());
  for_used_rows(parameter, [&](size_t at) {
    values.insert(values.end(), padded + at, padded + at + parameter.values.columns);
  });
  return values;
}

}  // namespace

CohortNetwork::CohortNetwork(const TrainedNetwork& network, size_t clients, size_t batch)
    : network_(network),
      architecture_(architecture_of(network.spec)),
      model_(make_trained_network(network, 1, RandomStream({.purpose = "replaced"}))),
      shapes_(shapes_of(model_)) {
  assert(clients <= 64);
  cohort_.clients = static_cast<uint32_t>(clients);
  cohort_.batch = static_cast<uint32_t>(batch);
  for (const Parameter* parameter : model_.parameters()) {
    by_name_[parameter->name] = offsets_.size();
    offsets_.push_back(floats_);
    floats_ += parameter->values.values.size();
  }
  parameters_ = Array<float>(clients * floats_);
  gradients_ = Array<float>(clients * floats_);
  velocity_ = Array<float>(clients * floats_);
  descents_ = Array<ClientDescent>(clients);
  surrogates_ = Array<Surrogate>(clients);
  images_ = Array<uint32_t>(clients);
  diverged_ = Array<uint32_t>(clients);
  cohort_.images = images_.data();

  std::vector<uint8_t> flags(floats_ / kLanes);
  for (size_t p = 0; p < offsets_.size(); ++p) {
    const size_t end = p + 1 < offsets_.size() ? offsets_[p + 1] : floats_;
    for (size_t i = offsets_[p] / kLanes; i < end / kLanes; ++i) {
      if (!shapes_[p].statistic) flags[i] |= kLearned;
      if (shapes_[p].decays) flags[i] |= kDecays;
    }
  }
  flags_ = Array<uint8_t>(flags.size());
  stream_.copy_to_device(flags_.data(), flags.data(), flags.size());

  const NetworkSpec& spec = network.spec;
  image_bytes_ = size_t{spec.height} * spec.image_width * spec.channels;
  pixels_ = Array<uint8_t>(clients * batch * image_bytes_);
  labels_ = Array<uint16_t>(clients * batch);
  std::vector<float> inputs;
  for (size_t c = 0; c < spec.channels; ++c) {
    for (int pixel = 0; pixel < 256; ++pixel)
      inputs.push_back(input_of(spec, static_cast<uint8_t>(pixel), c));
  }
  inputs_of_pixels_ = Array<float>(inputs.size());
  stream_.copy_to_device(inputs_of_pixels_.data(), inputs.data(), inputs.size() * sizeof(float));
  stream_.synchronise();
  for (size_t i = 0; i < kTurns; ++i) {
    auto staging = std::make_unique<Staging>();
    staging->pixels = PinnedArray<uint8_t>(pixels_.size());
    staging->labels = PinnedArray<uint16_t>(labels_.size());
    staging->images = PinnedArray<uint32_t>(clients);
    staging->descents = PinnedArray<ClientDescent>(clients);
    staging->surrogates = PinnedArray<Surrogate>(clients);
    staging_.push_back(std::move(staging));
  }
  for (size_t i = 0; i < std::min(clients, kValues); ++i) {
    values_.push_back(std::make_unique<Values>());
    values_.back()->floats = PinnedArray<float>(floats_);
  }
  found_diverged_ = PinnedArray<uint32_t>(clients);

  // A first convolution takes pixels as they are; other layers need padded channels.
  const bool plain = architecture_.layers[0].kind == LayerKind::kConvolution;
  Extent extent = extent_of(architecture_.input);
  if (plain) extent.channels = spec.channels;
  Node input{extent, allocate_array<float>(clients * batch * extent.floats()), nullptr};
  const Extent image{spec.height, spec.image_width, spec.channels};
  forward_.push_back([this, image, extent, input] {
    load_images(cohort_, image, extent.channels, pixels_.data(), inputs_of_pixels_.data(), input.value,
                stream_);
  });
  Builder builder(this);
  const Node scores = builder.add_all(architecture_.layers, input, nullptr);
  logits_ = scores.value;
  logits_gradient_ = scores.gradient;
  logits_columns_ = scores.extent.channels;
  rotated_plan_ = plan_rotated(rotated_);
  rotated_plan_.layers = on_device(rotated_);
  group_rotated();
  plan_ = plan_search(searches_);
  plan_.searches = on_device(searches_);
}

template <typename T>
const T* CohortNetwork::on_device(const std::vector<T>& values) {
  if (values.empty()) return nullptr;
  auto* copy = allocate_array<T>(values.size());
  stream_.copy_to_device(copy, values.data(), values.size() * sizeof(T));
  stream_.synchronise();
  return copy;
}

OfClient CohortNetwork::parameter(const std::string& name, bool gradient) const {
  const size_t offset = offsets_[by_name_.at(name)];
  return {(gradient ? gradients_ : parameters_).data() + offset, floats_};
}

CohortNetwork::Batches CohortNetwork::next_batches() {
  Staging& staging = *staging_[turn_];
  staging.done.wait();
  return {staging.pixels.data(), staging.labels.data(), staging.images.data()};
}

template <typename Work>
void CohortNetwork::beside(const Stream& side, Work work) {
  if (takes_launch_times()) return work(stream_);
  fork_.record(stream_);
  side.wait_for(fork_);
  work(side);
}

void CohortNetwork::join(const Stream& side) {
  if (takes_launch_times()) return;
  fork_.record(side);
  stream_.wait_for(fork_);
}

// A group has at least so large a part of all weights: the first ones, which the forward pass waits for, are
// small.
void CohortNetwork::group_rotated() {
  constexpr size_t kParts = 16;
  const auto weights = [](const Rotated& r) { return size_t{r.filters} * r.inputs; };
  size_t all = 0;
  for (const Rotated& r : rotated_) all += weights(r);
  size_t taken = 0;
  for (size_t first = 0, next = 0; next < rotated_.size();) {
    taken += weights(rotated_[next++]);
    if (taken * kParts < all && next < rotated_.size()) continue;
    auto group = std::make_unique<RotatedGroup>();
    group->first = first;
    group->plan = plan_rotated(std::span(rotated_).subspan(first, next - first));
    group->plan.layers = rotated_plan_.layers + first;
    groups_.push_back(std::move(group));
    first = next;
    taken = 0;
  }
}

void CohortNetwork::begin_rotated_layer(size_t layer) {
  for (const auto& group : groups_) {
    if (group->first == layer && !takes_launch_times()) stream_.wait_for(group->ready);
  }
}

void CohortNetwork::end_rotated_layer(size_t layer) {
  for (const auto& group : groups_) {
    if (group->first != layer) continue;
    beside(filters_, [&](const Stream& stream) {
      if (!takes_launch_times()) {
        fork_.record(products_);
        stream.wait_for(fork_);
      }
      rotated_backward(cohort_, group->plan, stream);
    });
  }
}

void CohortNetwork::step() {
  beside(products_, [&](const Stream& stream) {
    for (const auto& [memory, bytes] : cleared_) stream.clear(memory, bytes);
  });
  beside(filters_, [&](const Stream& stream) {
    for (const auto& group : groups_) {
      rotated_forward(cohort_, group->plan, stream);
      if (!takes_launch_times()) group->ready.record(stream);
    }
  });
  for (const auto& work : forward_) work();
  softmax_loss(cohort_, logits_columns_, network_.spec.classes, logits_, labels_.data(), logits_gradient_,
               diverged_.data(), stream_);
  join(products_);
  join(filters_);
  for (auto work = backward_.rbegin(); work != backward_.rend(); ++work) (*work)();
  join(products_);
  join(filters_);
}

void CohortNetwork::differentiate() {
  Staging& staging = *staging_[turn_];
  if (!dropouts_.empty()) draw_masks(staging.images.data());
  stream_.copy_to_device(pixels_.data(), staging.pixels.data(), pixels_.bytes());
  stream_.copy_to_device(labels_.data(), staging.labels.data(), labels_.bytes());
  stream_.copy_to_device(images_.data(), staging.images.data(), images_.bytes());
  if (!std::exchange(rotations_taken_, true)) take_rotations(cohort_, rotated_plan_, ~uint64_t{0}, stream_);
  graph_.run(&stream_, [this] { step(); });
  staging.done.record(stream_);
  turn_ = (turn_ + 1) % kTurns;
  asked_diverged_ = false;
}

void CohortNetwork::descend(std::span<const ClientDescent> descents) {
  Staging& staging = *staging_[turn_];
  staging.done.wait();
  std::copy(descents.begin(), descents.end(), staging.descents.data());
  stream_.copy_to_device(descents_.data(), staging.descents.data(), descents_.bytes());
  cuda::descend(cohort_.clients, floats_, flags_.data(), descents_.data(), parameters_.data(),
                gradients_.data(), velocity_.data(), stream_);
  staging.done.record(stream_);
}

void CohortNetwork::set_anchor(uint64_t mask) {
  if (!rotated_.empty() && rotated_[0].orthogonal) make_rotations_orthogonal(cohort_, plan_, mask, stream_);
  if (rotated_plan_.count > 0) rotated_set_anchor(cohort_, rotated_plan_, mask, stream_);
  rotations_taken_ = false;
}

void CohortNetwork::search_rotations(uint64_t mask, const std::vector<Surrogate>& surrogates) {
  Staging& staging = *staging_[turn_];
  staging.done.wait();
  std::copy(surrogates.begin(), surrogates.end(), staging.surrogates.data());
  stream_.copy_to_device(surrogates_.data(), staging.surrogates.data(), surrogates_.bytes());
  const bool searches = network_.rotated && network_.rotated->rotation != RotationUpdate::kFixed &&
                        network_.rotated->rotation != RotationUpdate::kNone;
  if (searches && plan_.count > 0)
    cuda::search_rotations(cohort_, plan_, rotated_plan_, kSearchIterations, mask, stream_);
}

void CohortNetwork::fuse(uint64_t mask) {
  if (rotated_plan_.count > 0) rotated_fuse(cohort_, rotated_plan_, mask, stream_);
}

void CohortNetwork::clear_velocity(size_t client) {
  stream_.clear(velocity_.data() + client * floats_, floats_ * sizeof(float));
}

void CohortNetwork::clear_diverged(size_t client) {
  stream_.clear(diverged_.data() + client, sizeof(uint32_t));
  found_diverged_.data()[client] = 0;
  asked_diverged_ = false;
}

// Asks, and answers by what has come back so far.
bool CohortNetwork::diverged(size_t client) {
  if (!asked_diverged_) stream_.copy_to_host(found_diverged_.data(), diverged_.data(), diverged_.bytes());
  asked_diverged_ = true;
  return found_diverged_.data()[client] != 0;
}

void CohortNetwork::seed_dropout(size_t client, const RandomStream& random) {
  size_t next = 0;
  model_.layers().for_each_layer(random, [&](Layer& layer, const RandomStream& own) {
    if (dynamic_cast<bitfed::Dropout*>(&layer) == nullptr) return;
    dropouts_[next]->streams[client] = own;
    dropouts_[next++]->passes[client] = 0;
  });
}

// By the host: draws are few where a network drops out, and stay those of the CPU.
void CohortNetwork::draw_masks(const uint32_t* images) {
  std::vector<float> mask;
  for (const auto& layer : dropouts_) {
    const auto dropped_below = static_cast<uint32_t>(layer->rate * 0x1p32);
    const auto scale = static_cast<float>(1 / (1 - layer->rate));
    for (size_t client = 0; client < cohort_.clients; ++client) {
      if (images[client] == 0) continue;
      RandomStream random = layer->streams[client].substream(layer->passes[client]++);
      mask.assign(images[client] * layer->count, 0.0f);
      for (size_t at = 0; at < mask.size(); ++at) {
        if (at % layer->channels < layer->used) mask[at] = random.next_u32() < dropped_below ? 0 : scale;
      }
      stream_.copy_to_device(layer->mask.data() + client * cohort_.batch * layer->count, mask.data(),
                             mask.size() * sizeof(float));
      stream_.synchronise();
    }
  }
}

void CohortNetwork::set(size_t client, size_t parameter, std::span<const float> values) {
  const Parameter& own = *model_.parameters()[parameter];
  Values& on_their_way = *values_[client % values_.size()];
  const std::lock_guard lock(on_their_way.mutex);
  float* padded = on_their_way.floats.data();
  std::fill_n(padded, own.values.values.size(), 0.0f);
  const float* from = values.data();
  for_used_rows(own, [&](size_t at) {
    std::copy_n(from, own.values.columns, padded + at);
    from += own.values.columns;
  });
  stream_.copy_to_device(parameters_.data() + client * floats_ + offsets_[parameter], padded,
                         own.values.values.size() * sizeof(float));
  stream_.synchronise();
  if (!rotated_.empty()) rotations_taken_ = false;
}

void CohortNetwork::set_all(const NetworkParameters& parameters) {
  assign_parameters(parameters, &model_);
  stream_.synchronise();  // whoever reads values_
  float* values = values_[0]->floats.data();
  for (size_t p = 0; p < offsets_.size(); ++p) {
    const Floats& own = model_.parameters()[p]->values.values;
    std::copy_n(own.data(), own.size(), values + offsets_[p]);
  }
  const size_t bytes = floats_ * sizeof(float);
  stream_.copy_to_device(parameters_.data(), values, bytes);
  for (size_t client = 1; client < cohort_.clients; ++client)
    stream_.copy_within_device(parameters_.data() + client * floats_, parameters_.data(), bytes);
  rotations_taken_ = false;
}

std::vector<float> CohortNetwork::get(size_t client, size_t parameter, bool gradient) {
  const Parameter& own = *model_.parameters()[parameter];
  Values& on_their_way = *values_[client % values_.size()];
  const std::lock_guard lock(on_their_way.mutex);
  const Array<float>& from = gradient ? gradients_ : parameters_;
  stream_.copy_to_host(on_their_way.floats.data(), from.data() + client * floats_ + offsets_[parameter],
                       own.values.values.size() * sizeof(float));
  stream_.synchronise();
  return without_padding(own, on_their_way.floats.data());
}

NetworkParameters CohortNetwork::get_all(size_t client) {
  Values& on_their_way = *values_[client % values_.size()];
  const std::lock_guard lock(on_their_way.mutex);
  const float* floats = on_their_way.floats.data();
  stream_.copy_to_host(on_their_way.floats.data(), parameters_.data() + client * floats_,
                       floats_ * sizeof(float));
  stream_.synchronise();
  NetworkParameters all;
  for (size_t p = 0; p < offsets_.size(); ++p)
    all.push_back(without_padding(*model_.parameters()[p], floats + offsets_[p]));
  return all;
}

}  // namespace bitfed::cuda
