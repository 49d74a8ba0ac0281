#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "bitfed/cuda/kernels.h"
#include "bitfed/zoo/network/architecture.h"
#include "bitfed/zoo/network/trainer.h"

namespace bitfed::cuda {

// The networks of a cohort's clients on the device: memory for all of them, and a training step as launches
// for all of them. Knows nothing of rounds.
class CohortNetwork {
 public:
  // At most 64 clients. Throws OutOfMemory; nothing is allocated later.
  CohortNetwork(const TrainedNetwork& network, size_t clients, size_t batch);

  const TrainedNetwork& network() const { return network_; }
  size_t clients() const { return cohort_.clients; }
  size_t batch() const { return cohort_.batch; }
  const ParameterShapes& shapes() const { return shapes_; }
  Stream& stream() { return stream_; }

  // What a step takes: pixels [client][image], labels likewise, images of each client.
  struct Batches {
    uint8_t* pixels;
    uint16_t* labels;
    uint32_t* images;
  };
  // Memory of the host for the next step, which the step before the last has done with.
  Batches next_batches();
  size_t image_bytes() const { return image_bytes_; }

  void differentiate();  // the batches that next_batches() gave
  void set_anchor(uint64_t mask);
  void search_rotations(uint64_t mask, const std::vector<Surrogate>& surrogates);
  void fuse(uint64_t mask);
  void clear_velocity(size_t client);
  void clear_diverged(size_t client);
  bool diverged(size_t client);  // in the steps that are known to be done, at least until synchronise()
  void descend(std::span<const ClientDescent> descents);
  void seed_dropout(size_t client, const RandomStream& random);

  // One parameter, or all, without padding. Several threads may ask, but for set_all().
  void set(size_t client, size_t parameter, std::span<const float> values);
  void set_all(const NetworkParameters& parameters);  // of every client
  std::vector<float> get(size_t client, size_t parameter, bool gradient);
  NetworkParameters get_all(size_t client);

 private:
  struct Node;
  class Builder;
  struct DropoutLayer {
    size_t count;     // values of an image
    size_t used;      // channels that are not padding
    size_t channels;  // with padding
    double rate;
    Array<float> mask;
    std::vector<RandomStream> streams;  // per client
    std::vector<uint64_t> passes;
  };

  template <typename T>
  T* allocate_array(size_t count);
  template <typename T>
  const T* on_device(const std::vector<T>& values);
  OfClient parameter(const std::string& name, bool gradient) const;
  void draw_masks(const uint32_t* images);
  void step();
  void group_rotated();
  // Launches of a step beside the main stream, where that leaves the device idle: on `side`, which waits for
  // what the main stream has got so far.
  template <typename Work>
  void beside(const Stream& side, Work work);
  void join(const Stream& side);           // the main stream waits for it
  void begin_rotated_layer(size_t layer);  // before its signs are used
  void end_rotated_layer(size_t layer);    // when its gradient is known or on its way

  TrainedNetwork network_;
  Architecture architecture_;
  Cohort cohort_{};
  Stream stream_;
  Network model_;  // on the CPU: what its parameters are, and how they are padded
  ParameterShapes shapes_;
  std::vector<size_t> offsets_;  // of every parameter
  std::map<std::string, size_t> by_name_;
  size_t floats_ = 0;  // of all parameters of a client
  Array<float> parameters_, gradients_, velocity_;
  Array<uint8_t> flags_;
  Array<ClientDescent> descents_;
  Array<Surrogate> surrogates_;
  Array<uint32_t> images_, diverged_;
  Array<uint8_t> pixels_;
  Array<uint16_t> labels_;
  Array<float> inputs_of_pixels_;
  size_t image_bytes_ = 0;

  // The host's side of copies, taken in turns.
  struct Staging {
    PinnedArray<uint8_t> pixels;
    PinnedArray<uint16_t> labels;
    PinnedArray<uint32_t> images;
    PinnedArray<ClientDescent> descents;
    PinnedArray<Surrogate> surrogates;
    Event done;
  };
  std::vector<std::unique_ptr<Staging>> staging_;
  size_t turn_ = 0;
  struct Values {  // of one client's parameters, on their way
    std::mutex mutex;
    PinnedArray<float> floats;
  };
  std::vector<std::unique_ptr<Values>> values_;
  PinnedArray<uint32_t> found_diverged_;
  bool asked_diverged_ = false;  // since the last step

  std::vector<std::shared_ptr<void>> memory_;
  std::vector<std::pair<void*, size_t>> cleared_;  // at the start of every step
  std::vector<std::function<void()>> forward_, backward_;
  std::vector<Rotated> rotated_;
  RotatedPlan rotated_plan_;
  // Neighbouring layers whose weights pass through forward and backward pass together.
  struct RotatedGroup {
    size_t first = 0;
    RotatedPlan plan;
    Event ready;  // the signs
  };
  std::vector<std::unique_ptr<RotatedGroup>> groups_;
  Stream filters_{Stream::Kind::kFiller};   // weights to signs and back
  Stream products_{Stream::Kind::kFiller};  // the signs' gradients
  Event fork_;
  bool rotations_taken_ = false;  // in fixed point, as they are
  std::vector<Search> searches_;
  SearchPlan plan_;
  std::vector<std::unique_ptr<DropoutLayer>> dropouts_;
  const float* logits_ = nullptr;
  float* logits_gradient_ = nullptr;
  uint32_t logits_columns_ = 0;
  Graph graph_;
};

}  // namespace bitfed::cuda
