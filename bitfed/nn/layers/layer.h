#pragma once

#include <cassert>
#include <span>
#include <string>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/nn/layers/images.h"

namespace bitfed {

// Of every `size` rows of a matrix the first `used` hold numbers; the others meet idle channels, and stay 0.
struct RowGroups {
  size_t size = 1;
  size_t used = 1;
};

// Numbers that training changes, or, if it is a statistic, that it gathers; rows are padded to whole lanes.
struct Parameter {
  Parameter(std::string of, size_t row_count, size_t column_count, bool is_statistic = false,
            const RowGroups& row_groups = {})
      : name(std::move(of)),
        values(row_count, column_count),
        gradient(is_statistic ? Matrix() : Matrix(row_count, column_count)),
        statistic(is_statistic),
        groups(row_groups) {}

  std::string name;
  Matrix values;
  Matrix gradient;  // empty for a statistic
  bool statistic;
  RowGroups groups;

  size_t used_rows() const { return values.rows / groups.size * groups.used; }
  size_t count() const { return used_rows() * values.columns; }
  // Without padding and idle rows, row by row.
  std::vector<float> numbers() const;
  void assign(std::span<const float> numbers);
  void gradient_numbers(std::vector<float>* numbers) const;
};

// Training takes batch norm's statistics from the batch, prediction the running ones.
enum class Pass { kTraining, kPrediction };

// A layer of a network: everything is allocated when it is made, for batches up to a size. Its output, and
// the gradient of it that the layer behind it fills in, are its own; gradients have no border.
class Layer {
 public:
  virtual ~Layer() = default;

  virtual void forward(const Images& input, size_t images, Pass pass) = 0;
  // After a pass of training: from output_gradient() to the parameters' gradients and, where it is asked for,
  // the input's.
  virtual void backward(const Images& input, size_t images, Images* input_gradient) = 0;
  // The same where the input has another path beside this one: its gradient becomes the sum of both. A
  // convolution expects `beside` to be the input's gradient itself.
  virtual void backward_beside(const Images& /*input*/, size_t /*images*/, const Images& /*beside*/,
                               Images* /*input_gradient*/) {
    assert(false);
  }
  virtual std::vector<Parameter*> parameters() { return {}; }
  virtual void start(RandomStream /*random*/) {}  // fresh parameters

  // For layers that know of rounds and epochs; `part` of all rounds and epochs is over, from 0 to 1.
  virtual void begin_round() {}
  virtual void begin_epoch(double /*part*/) {}
  virtual void end_round() {}

  // The numbers of its parameters as a trained network predicts with them.
  virtual std::vector<std::vector<float>> deployed();

  const Images& output() const { return output_; }
  Images& output_gradient() {
    if (shared_gradient_ != nullptr) return *shared_gradient_;
    return place_ == GradientPlace::kOutput ? output_ : output_gradient_;
  }
  // It is another layer's, too, from now on.
  void share_output_gradient(Images* gradient) {
    shared_gradient_ = gradient;
    output_gradient_ = Images();
  }

 protected:
  // The gradient may take the place of the output, if no border is about it: what was just read is written
  // faster. The layer behind must have read a number of the output before it writes there, as batch norm
  // does.
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
  Images output_gradient_;  // where it has a place of its own
  Images* shared_gradient_ = nullptr;
  GradientPlace place_;
};

}  // namespace bitfed
