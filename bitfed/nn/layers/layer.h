#pragma once

#include <cassert>
#include <utility>
#include <vector>

#include "bitfed/nn/layers/images.h"
#include "bitfed/nn/layers/layer_group.h"

namespace bitfed {

// In training, batch norm takes its statistics from the batch; in prediction, the running ones.
enum class Pass { kTraining, kPrediction };

// From a batch of images to a batch of images. A layer allocates all its memory when it is made, for batches
// up to a size. It owns its output and the gradient of its output, which the next layer writes; gradients
// have no border. Channels of inputs and outputs are padded to kLanes (a network's input is not); padding
// channels are 0, in gradients too. A layer is used by one thread at a time.
class Layer : public LayerGroup {
 public:
  virtual void forward(const Images& input, size_t images, Pass pass) = 0;
  // After a forward pass in training of the same input: computes the gradients of the parameters and, unless
  // it is null, of the input from output_gradient(). A shared output_gradient() stays as it is. The input's
  // gradient may lie in the input's own memory (GradientPlace::kOutput of the previous layer): read a value
  // before it is overwritten.
  virtual void backward(const Images& input, size_t images, Images* input_gradient) = 0;

  void for_each_layer(const RandomStream& random, const Visit& visit) override { visit(*this, random); }

  const Images& output() const { return output_; }
  Images& output_gradient() {
    if (shared_gradient_ != nullptr) return *shared_gradient_;
    return place_ == GradientPlace::kOutput ? output_ : output_gradient_;
  }
  // From now on the output's gradient is `gradient`, which other layers share.
  virtual void share_output_gradient(Images* gradient) {
    shared_gradient_ = gradient;
    output_gradient_ = Images();
  }

 protected:
  // kOutput: the gradient overwrites the output, which the next layer has just read and a cache holds. For
  // outputs without a border.
  enum class GradientPlace { kOwn, kOutput };

  explicit Layer(Images output, GradientPlace place = GradientPlace::kOwn)
      : output_(std::move(output)),
        output_gradient_(place == GradientPlace::kOwn ? output_.batch() : 0,
                         output_.shape().without_border()),
        place_(place) {
    assert(place == GradientPlace::kOwn || output_.shape().border == 0);
  }
  Layer(size_t batch, const ImageShape& shape, GradientPlace place = GradientPlace::kOwn)
      : Layer(Images(batch, shape), place) {}

  Images output_;

 private:
  // This layer's part of the functions of LayerGroup.
  friend class LayerGroup;
  virtual void on_initialise(RandomStream /*random*/) {}
  virtual void on_seed(const RandomStream& /*random*/) {}
  virtual void on_set_anchor() {}
  virtual void on_begin_epoch(double /*progress*/) {}
  virtual void on_fuse() {}
  virtual std::vector<Parameter*> own_parameters() { return {}; }
  virtual std::vector<std::vector<float>> own_deployed() {
    std::vector<std::vector<float>> all;
    for (const Parameter* parameter : own_parameters()) all.push_back(parameter->to_vector());
    return all;
  }

  Images output_gradient_;  // empty where it is shared, or lies in the output
  Images* shared_gradient_ = nullptr;
  GradientPlace place_;
};

// A layer that can add to its input's gradient: for an input that another path of the network takes, too.
class AddingLayer : public Layer {
 public:
  // As backward(), but the input's gradient becomes the sum of this layer's and `other`, the other path's,
  // which may be *input_gradient itself.
  virtual void backward_adding(const Images& input, size_t images, const Images& other,
                               Images* input_gradient) = 0;

 protected:
  using Layer::Layer;
};

}  // namespace bitfed
