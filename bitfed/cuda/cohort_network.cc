#include "bitfed/cuda/cohort_network.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "bitfed/cuda/cohort_builder.h"
#include "bitfed/nn/layers/dropout.h"
#include "bitfed/zoo/architectures/architectures.h"

namespace bitfed::cuda {
namespace {

constexpr size_t kTurns = 3;
constexpr uint32_t kSearchIterations = 3;  // BinaryConvolution::kRotationIterations

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
  values_ = PinnedArray<float>(floats_);
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
  plan_ = plan_search(searches_);
  if (searches_.empty()) return;
  auto* on_device = allocate_array<Search>(searches_.size());
  stream_.copy_to_device(on_device, searches_.data(), searches_.size() * sizeof(Search));
  stream_.synchronise();
  plan_.searches = on_device;
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

void CohortNetwork::step() {
  for (const auto& [memory, bytes] : cleared_) stream_.clear(memory, bytes);
  for (const auto& work : forward_) work();
  softmax_loss(cohort_, logits_columns_, network_.spec.classes, logits_, labels_.data(), logits_gradient_,
               diverged_.data(), stream_);
  for (auto work = backward_.rbegin(); work != backward_.rend(); ++work) (*work)();
}

void CohortNetwork::differentiate() {
  Staging& staging = *staging_[turn_];
  if (!dropouts_.empty()) draw_masks(staging.images.data());
  stream_.copy_to_device(pixels_.data(), staging.pixels.data(), pixels_.bytes());
  stream_.copy_to_device(labels_.data(), staging.labels.data(), labels_.bytes());
  stream_.copy_to_device(images_.data(), staging.images.data(), images_.bytes());
  graph_.run(&stream_, [this] { step(); });
  staging.done.record(stream_);
  turn_ = (turn_ + 1) % kTurns;
  values_hold_all_ = false;
  knows_diverged_ = false;
}

void CohortNetwork::descend(std::span<const ClientDescent> descents) {
  Staging& staging = *staging_[turn_];
  staging.done.wait();
  std::copy(descents.begin(), descents.end(), staging.descents.data());
  const bool moves = std::any_of(descents.begin(), descents.end(),
                                 [](const ClientDescent& d) { return d.momentum != 0 || d.decay != 0; });
  if (moves && velocity_.size() == 0) velocity_ = Array<float>(parameters_.size());
  stream_.copy_to_device(descents_.data(), staging.descents.data(), descents_.bytes());
  cuda::descend(cohort_.clients, floats_, flags_.data(), descents_.data(), parameters_.data(),
                gradients_.data(), velocity_.data(), stream_);
  staging.done.record(stream_);
  values_hold_all_ = false;
}

void CohortNetwork::set_anchor(uint64_t mask) {
  if (!rotated_.empty() && rotated_[0].orthogonal) make_rotations_orthogonal(cohort_, plan_, mask, stream_);
  for (const Rotated& r : rotated_) rotated_set_anchor(cohort_, r, mask, stream_);
  values_hold_all_ = false;
}

void CohortNetwork::search_rotations(uint64_t mask, const std::vector<Surrogate>& surrogates) {
  Staging& staging = *staging_[turn_];
  staging.done.wait();
  std::copy(surrogates.begin(), surrogates.end(), staging.surrogates.data());
  stream_.copy_to_device(surrogates_.data(), staging.surrogates.data(), surrogates_.bytes());
  const bool searches = network_.rotated && network_.rotated->rotation != RotationUpdate::kFixed &&
                        network_.rotated->rotation != RotationUpdate::kNone;
  if (searches && plan_.count > 0) cuda::search_rotations(cohort_, plan_, kSearchIterations, mask, stream_);
  values_hold_all_ = false;
}

void CohortNetwork::fuse(uint64_t mask) {
  for (const Rotated& r : rotated_) rotated_fuse(cohort_, r, mask, stream_);
  values_hold_all_ = false;
}

void CohortNetwork::clear_velocity(size_t client) {
  if (velocity_.size() > 0) stream_.clear(velocity_.data() + client * floats_, floats_ * sizeof(float));
}

void CohortNetwork::clear_diverged(size_t client) {
  stream_.clear(diverged_.data() + client, sizeof(uint32_t));
  knows_diverged_ = false;
}

bool CohortNetwork::diverged(size_t client) {
  if (!knows_diverged_) {
    stream_.copy_to_host(found_diverged_.data(), diverged_.data(), diverged_.bytes());
    stream_.synchronise();
    knows_diverged_ = true;
  }
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
  Parameter& own = *model_.parameters()[parameter];
  own.assign(values);
  stream_.copy_to_device(parameters_.data() + client * floats_ + offsets_[parameter],
                         own.values.values.data(), own.values.values.size() * sizeof(float));
  stream_.synchronise();
  values_hold_all_ = false;
}

// Clients of a cohort begin with the same parameters: the second and later ones copy the first one's.
void CohortNetwork::set_all(size_t client, const NetworkParameters& parameters) {
  const size_t bytes = floats_ * sizeof(float);
  if (broadcast_.size() == 0) broadcast_ = Array<float>(floats_);
  if (last_set_ != parameters) {
    assign_parameters(parameters, &model_);
    stream_.synchronise();  // whoever reads values_
    for (size_t p = 0; p < offsets_.size(); ++p) {
      const Floats& own = model_.parameters()[p]->values.values;
      std::copy_n(own.data(), own.size(), values_.data() + offsets_[p]);
    }
    stream_.copy_to_device(broadcast_.data(), values_.data(), bytes);
    last_set_ = parameters;
  }
  stream_.copy_within_device(parameters_.data() + client * floats_, broadcast_.data(), bytes);
  values_hold_all_ = false;
}

std::vector<float> CohortNetwork::get(size_t client, size_t parameter, bool gradient) {
  Parameter& own = *model_.parameters()[parameter];
  const Array<float>& from = gradient ? gradients_ : parameters_;
  stream_.copy_to_host(own.values.values.data(), from.data() + client * floats_ + offsets_[parameter],
                       own.values.values.size() * sizeof(float));
  stream_.synchronise();
  return own.to_vector();
}

NetworkParameters CohortNetwork::get_all(size_t client) {
  if (!values_hold_all_ || holder_ != client) {
    stream_.copy_to_host(values_.data(), parameters_.data() + client * floats_, floats_ * sizeof(float));
    stream_.synchronise();
    values_hold_all_ = true;
    holder_ = client;
  }
  NetworkParameters all(offsets_.size());
  for (size_t p = 0; p < offsets_.size(); ++p) {
    const Parameter& own = *model_.parameters()[p];
    all[p].reserve(own.count());
    for (size_t row = 0; row < own.values.rows; ++row) {
      if (row % own.groups.size >= own.groups.used) continue;
      const float* from = values_.data() + offsets_[p] + row * own.values.stride;
      all[p].insert(all[p].end(), from, from + own.values.columns);
    }
  }
  return all;
}

}  // namespace bitfed::cuda
