#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitfed {

// Rows of matrices are padded with zeros to whole runs of this many floats, on every instruction set: kernels
// then have no tails, and sums along a row are taken in one order everywhere.
inline constexpr size_t kLanes = 16;

constexpr size_t padded(size_t columns) {
  return (columns + kLanes - 1) / kLanes * kLanes;
}

// c = a * b. The elements of a stand where the steps say, so that a transposed a is the same product with its
// steps swapped; rows of b and c are padded. Every element of c is a sum in the order of the depth, each term
// by one fused multiply-add.
struct Product {
  const float* a;
  size_t a_row_step;
  size_t a_depth_step;
  const float* b;
  size_t b_stride;
  float* c;
  size_t c_stride;
  size_t rows;
  size_t columns;  // padded
  size_t depth;
};

// The same for an a whose parts lie about in an image: convolutions without copies of their patches. The
// depth is a row of `segments` pieces of `depth` each; a piece of a and of b lies a step behind the one
// before. Either row r of a begins at a + places[r] and goes on with the depth (forward: a pixel's patch, a
// piece for each of its rows), or depth k of a begins at a + places[k] and goes on with the rows (the
// weights' gradient: pixels, a piece for each image). `adds`: the sums go on from what c holds.
struct GatheredProduct {
  const float* a;
  const uint32_t* places;
  bool by_row;
  bool adds;
  size_t segments;
  size_t a_segment_step;
  const float* b;
  size_t b_stride;
  size_t b_segment_step;
  float* c;
  size_t c_stride;
  size_t rows;
  size_t columns;  // padded
  size_t depth;
};

enum class Activation { kNone, kSign, kRelu, kHardtanh };  // sign(0) = +1; hardtanh clips to ±1

// Batch norm, then an activation, while training: over `rows` rows,
//   normal = (x - mean) / sqrt(variance + epsilon), out = activation(normal * scale + shift).
// The variance is the biased one. Long sums are taken in runs of 256.
struct NormForward {
  const float* x;
  size_t rows;
  size_t columns;  // padded; also the stride of all matrices here
  const float* scale;
  const float* shift;
  float epsilon;
  Activation activation;
  float* normal;
  float* out;
  float* mean;
  float* variance;
  float* inverse_deviation;
};

// The way back: from the gradient of `out` to that of x (in its place), of the scale and of the shift. A sign
// (straight through) and a hardtanh let gradients pass where their argument is within ±1, a ReLU where it is
// above 0.
struct NormBackward {
  float* gradient;  // of out; becomes that of x
  size_t rows;
  size_t columns;  // padded; also the stride
  const float* normal;
  const float* scale;
  const float* shift;
  const float* inverse_deviation;
  Activation activation;
  float* scale_gradient;
  float* shift_gradient;
};

// Adam (Kingma and Ba, 2015; the form with the correction in the rate, as Keras has it). `bound` > 0: the
// parameters are latent ones of signs: no gradient where one is beyond the bound (straight through), and all
// are clipped to it after the step.
struct AdamStep {
  float* parameters;
  const float* gradient;
  float* first_moment;
  float* second_moment;
  size_t count;  // padded
  float rate;    // corrected for the step's number
  float beta1;
  float beta2;
  float rest1;  // 1 - beta1, which floats cannot subtract without loss
  float rest2;
  float epsilon;
  float bound;
};

// The kernels of neural networks, one table per instruction set. All give the same bits.
struct NeuralKernels {
  const char* name;

  void (*multiply)(const Product& product);
  void (*multiply_gathered)(const GatheredProduct& product);
  void (*norm_forward)(const NormForward& norm);
  void (*norm_backward)(const NormBackward& norm);

  // The largest of 2 x 2 pixels of `channels` (padded) values each: `pixels` outputs side by side, from twice
  // as many pixels in each of two rows. The way back gives the gradient to the first of the largest.
  void (*max_pool)(const float* upper, const float* lower, size_t pixels, size_t channels, float* out);
  void (*max_pool_back)(const float* upper, const float* lower, size_t pixels, size_t channels,
                        const float* gradient, float* upper_gradient, float* lower_gradient);

  // parameters -= rate * gradient
  void (*descend)(float* parameters, const float* gradient, size_t count, float rate);

  // out = activation(x * factor + shift) with two roundings, column by column: a trained layer as it is
  // deployed, in arithmetic that plain C can repeat.
  void (*affine)(const float* x, size_t rows, size_t columns, const float* factor, const float* shift,
                 Activation activation, float* out);

  // Softmax and cross-entropy of `rows` rows of logits of which the first `classes` count: the logits become
  // their gradient, divided by the rows. `sums` receives each row's sum of exp(logit - largest) and
  // `margins` largest - logit of the label: the loss is log(sum) + margin.
  void (*softmax_loss)(float* logits, size_t rows, size_t columns, size_t classes, const uint16_t* labels,
                       float* sums, float* margins);

  void (*adam)(const AdamStep& step);

  // to = from, transposed. Rows of both are padded, and `to` has as many rows as `from` has columns with its
  // padding: what falls on padding there is padding here.
  void (*transpose)(const float* from, size_t rows, size_t columns, float* to, size_t to_stride);

  // out = the signs of x, as +1 and -1; sign(0) = +1.
  void (*signs)(const float* x, size_t count, float* out);
};

// The table for the instruction set of kernels().
const NeuralKernels& neural_kernels();

// All tables that this CPU can run, the plain one first.
std::vector<const NeuralKernels*> supported_neural_kernels();

}  // namespace bitfed
