#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitfed {

// Rows of matrices are padded with zeros to whole runs of this many floats, on every instruction set: kernels
// then have no tails, and sums along a row are taken in one order everywhere.
inline constexpr size_t kLanes = 16;

// Outputs as large as this are written past the caches (`streams`, where a kernel sees a part of one): nobody
// would find them there when they are read again, and a cache reads what it is to write.
inline constexpr size_t kStreamedBytes = size_t{4} << 20;

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
// depth is a row of `segments` pieces of `depth` each; a piece of a lies a step behind the one before.
// Element k of row r is a[places[r] + k] (forward: a pixel's patch, a piece for each of its rows), or, with
// depth_places, a[places[r] + depth_places[k]] (the weights' gradient: a weight and a pixel, a piece for each
// image). `adds`: the sums go on from what c holds.
struct GatheredProduct {
  const float* a;
  const uint32_t* places;
  const uint32_t* depth_places;
  bool adds;
  size_t segments;
  size_t a_segment_step;
  const float* b;  // a row of `columns` for every element of the depth
  float* c;
  size_t c_stride;
  size_t rows;
  size_t columns;  // padded
  size_t depth;
};

enum class Activation { kNone, kSign, kRelu, kHardtanh };  // sign(0) = +1; hardtanh clips to ±1

// Batch norm, then an activation, while training: over `rows` rows,
//   normal = (x - mean) / sqrt(variance + epsilon), out = activation(normal * scale + shift).
// The variance is the biased one. Long sums are taken in runs of 256. Mean and variance of a large x are
// those of `moments`, of a small one more exact: from two passes.
struct NormForward {
  const float* x;
  size_t rows;
  size_t columns;  // padded; also the stride of all matrices here
  const float* scale;
  const float* shift;
  float epsilon;
  Activation activation;
  float* out;
  float* mean;
  float* variance;
  float* inverse_deviation;
};

// The way back: from the gradient of `out` to that of x, of the scale and of the shift. A sign
// (straight through) and a hardtanh let gradients pass where their argument is within ±1, a ReLU where it is
// above 0.
struct NormBackward {
  const float* gradient;  // of out
  size_t rows;
  size_t columns;  // padded; also the stride
  const float* x;
  const float* mean;
  const float* inverse_deviation;
  const float* scale;
  const float* shift;
  Activation activation;
  float* scale_gradient;
  float* shift_gradient;
  float* x_gradient;  // may be `gradient` or x itself
};

// Batch norm, an activation, and the largest of 2 x 2 pixels, in one: only what enters and what is left of it
// pass through memory. Images lie one after the other without a border; a last odd row or column is not
// pooled. Out of the 4 pixels x of a window comes activation(x * factor + shift) of the one that makes it
// largest, with two roundings; the gradient goes to that pixel (the first of equal ones), and `chosen`, if
// given, receives it, window by window.
struct NormPool {
  const float* x;
  size_t images;
  size_t height;
  size_t width;
  size_t channels;      // padded
  const float* factor;  // scale / deviation
  const float* shift;
  Activation activation;
  float* chosen;

  size_t windows() const { return (height / 2) * (width / 2); }  // of an image
};

// Where the windows of the images lie.
struct PoolPlaces {
  size_t row_step;
  size_t image_step;
};

// The gradient of what was pooled (without a border), on its way back. First the sums over all windows, of
// the gradient (which is that of the shift) and of the gradient times the chosen pixel as batch norm left it,
// (chosen - mean) * inverse_deviation (that of the scale); then, with `slope` and `offset` made of them, that
// of x: x * slope + offset, and at the windows' chosen pixels the gradient times factor.
struct NormPoolSums {
  const float* gradient;
  const float* mean;
  const float* inverse_deviation;
  float* sum;
  float* along;
};

struct NormPoolBackward {
  const float* gradient;
  const float* slope;
  const float* offset;
  float* x_gradient;  // may be x itself
};

// Products of 16-bit integers, exact: for weights and activations of one bit, and gradients in fixed point.
// Two elements that follow each other along the depth lie side by side (a pair). c = factor * sums, or that
// added to c. Sums must stay below 2^31.
//
// Row r of a begins at a + places[r]; the depth goes on in `segments` pieces of `pairs` pairs each, for which
// a goes a_segment_step on, and b (a row of `columns` pairs for every pair of the depth) b_segment_step.
struct PairProduct {
  const int16_t* a;
  const uint32_t* places;
  size_t segments;
  size_t pairs;
  size_t a_segment_step;
  const int16_t* b;
  size_t b_segment_step;
  float* c;
  size_t c_stride;
  size_t rows;
  size_t columns;  // padded
  float factor;
  bool adds = false;
  int16_t* rounded_c = nullptr;  // if given it receives c instead, rounded as quantise does; not added
};

// The same of an a that lies the other way about: for every pair of the depth a row, a_stride long, of pairs,
// one for every row of c.
struct PairSum {
  const int16_t* a;
  size_t a_stride;
  const int16_t* b;
  size_t pairs;
  float* c = nullptr;
  size_t c_stride;
  size_t rows;
  size_t columns;  // padded
  float factor = 1;
  bool adds;
  int32_t* whole_c = nullptr;  // if given it receives the sums instead, without the factor
};

// A sign's surrogate on the way back, F'(x) = max(k (sqrt(2) t - t^2 |x|), 0).
struct Surrogate {
  float t;
  float k;
};

// The way back through out = sign(normal), normal = (x - mean) * inverse_deviation, where mean and deviation
// are those of all `count` numbers x.
struct SignBackward {
  const float* x;
  size_t count;
  float mean;
  float inverse_deviation;
  Surrogate surrogate;
  const float* gradient;  // of out
  float* x_gradient;
  bool streams;
  const float* beside = nullptr;  // if given, this is added
};

// What FedBNN makes of the weights of one filter, see RotatedWeights, and the way back. All are `count`
// floats with the filter's padding, where all but the signs are 0.
struct FilterBlend {
  const float* weights;  // standardised
  const float* turned;
  const float* server;  // standardised
  float alpha;
  float beta;
  size_t count;
};

struct FilterBlendBackward {
  FilterBlend forward;
  Surrogate surrogate;
  const float* gradient;  // of the signs of blended; of blended it is g
  float* kept;            // (1 - alpha - beta) g
  float* turned;          // alpha g
  float of_alpha;         // out: sum of g (turned - weights)
  float of_beta;          // out: sum of g (server - weights)
};

// weights = (fused - mean) / deviation, fused = lambda local + (1 - lambda) server.
struct FilterFuseBackward {
  const float* weights;
  const float* gradient;  // of weights: the sum of these two
  const float* gradient_turned;
  const float* local;
  const float* server;
  const float* mask;  // 1 where there is a weight, 0 in the padding
  size_t count;
  size_t numbers;  // without the padding
  float inverse_deviation;
  float lambda;
  float* local_gradient;
  float of_lambda;  // out
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

// The bounds of an activation that clips: ReLU's 0 and infinity, hardtanh's ±1.
struct ClipBounds {
  float least;
  float most;
};

// The kernels of neural networks, one table per instruction set. All give the same bits.
struct NeuralKernels {
  const char* name;

  void (*multiply)(const Product& product);
  void (*multiply_gathered)(const GatheredProduct& product);
  void (*norm_forward)(const NormForward& norm);
  // Returns the largest magnitude of x_gradient, as largest_magnitude does.
  float (*norm_backward)(const NormBackward& norm);

  // Mean and biased variance of every column, from one pass over x.
  void (*moments)(const float* x, size_t rows, size_t columns, float* mean, float* variance);
  void (*norm_pool)(const NormPool& pool, const PoolPlaces& places, float* out);
  void (*norm_pool_sums)(const NormPool& pool, const NormPoolSums& sums);
  void (*norm_pool_back)(const NormPool& pool, const NormPoolBackward& back);

  void (*multiply_pairs)(const PairProduct& product);
  void (*sum_pairs)(const PairSum& product);
  // The largest magnitude of x, not a number if one of x is not finite; and x * factor, rounded to the
  // nearest integer, ties to even, as 16 bits: one after the other, or of two x in turn.
  float (*largest_magnitude)(const float* x, size_t count);
  void (*quantise)(const float* x, size_t count, float factor, int16_t* out);
  void (*quantise_pairs)(const float* even, const float* odd, size_t count, float factor, int16_t* out);
  // The same of two rows of signs as bits, see Images.
  void (*sign_pairs)(const uint32_t* even, const uint32_t* odd, size_t pixels, size_t channels, int16_t* out);

  // Two rows of 16-bit integers, or their signs (that of 0 is +1), as pairs of those that stand above each
  // other.
  void (*pair_shorts)(const int16_t* even, const int16_t* odd, size_t count, int16_t* out);
  void (*pair_signs)(const int16_t* even, const int16_t* odd, size_t count, int16_t* out);
  // The signs, and two that follow each other in a row are a pair: of column pair p and row r at to[p][r].
  void (*transpose_signs)(const int16_t* from, size_t rows, size_t columns, int16_t* to, size_t to_stride);

  // out = a + b within the bounds; and the way back: the gradient becomes 0 unless out is within them and not
  // on one.
  void (*add_clipped)(const float* a, const float* b, size_t count, ClipBounds bounds, float* out);
  void (*clip_back)(const float* out, size_t count, ClipBounds bounds, float* gradient);

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

  // out = x >= threshold ? 1 : -1.
  void (*signs)(const float* x, size_t count, float threshold, float* out);

  void (*add)(const float* x, const float* y, size_t count, float* sum);
  // x * a + y * b, the first product fused.
  void (*combine)(const float* x, float a, const float* y, float b, size_t count, float* out);
  // Of `numbers` numbers, with their padding of zeros `count`; the mask tells them apart (none: no padding).
  // The mean is of sixteen sums of doubles, number i in sum i % 16, added up by halves: plain C can repeat
  // it, and another order gives all but certainly the same float.
  float (*mean)(const float* x, size_t count, size_t numbers);
  float (*deviation)(const float* x, size_t count, const float* mask, size_t numbers, float mean);
  // (x - mean) * factor where the mask is 1, 0 elsewhere.
  void (*standardise)(const float* x, size_t count, const float* mask, float mean, float factor, float* out);
  void (*sign_back)(const SignBackward& sign);
  // weights + alpha (turned - weights) + beta (server - weights)
  void (*blend_filter)(const FilterBlend& blend, float* blended);
  void (*blend_filter_back)(FilterBlendBackward* blend);
  void (*fuse_filter_back)(FilterFuseBackward* fuse);
};

// The table for the instruction set of kernels().
const NeuralKernels& neural_kernels();

// All tables that this CPU can run, the plain one first.
std::vector<const NeuralKernels*> supported_neural_kernels();

}  // namespace bitfed
