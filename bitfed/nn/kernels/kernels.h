#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitfed {

// Rows of matrices are padded with zeros to a multiple of this many floats, on every instruction set: kernels
// have no tails, and sums along a row have one order everywhere.
inline constexpr size_t kLanes = 16;

// The order of sums over a filter or an image, on every instruction set and on a GPU: of so many values
// together, value i is added to chain i % 64, the chains are added up by halves, and what comes of them in
// sequence.
inline constexpr size_t kSumChains = 64;
inline constexpr size_t kSummedTogether = 2048;

// The order of batch norm's sums: so many rows in sequence, so many such sums in sequence, then these.
inline constexpr size_t kNormRun = 64;
inline constexpr size_t kNormRunsTogether = 16;

// Outputs of at least this size use non-temporal stores: they would be evicted before they are read, and a
// cache reads a line before it writes it. Kernels that see a part of an output take the choice as `streams`.
inline constexpr size_t kStreamedBytes = size_t{4} << 20;

constexpr size_t padded(size_t columns) {
  return (columns + kLanes - 1) / kLanes * kLanes;
}

// c = a * b. Element (r, k) of a lies at a[r * a_row_step + k * a_depth_step]: swap the steps for a
// transposed a. Rows of b and c are padded. Every element of c is a sum in the order of the depth, each term
// by one fused multiply-add. `descent`: not 0, c takes a step along a * b instead, as by descend() at this
// rate.
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
  float descent = 0;
};

// c = a * b where a is gathered from images: a convolution without copies of its patches. The depth consists
// of `segments` segments of `depth` elements each, a_segment_step floats apart in a. Element k of a segment
// of row r is a[offsets[r] + k] (forward: a pixel's patch, a segment per row of the kernel), or, with
// depth_offsets, a[offsets[r] + depth_offsets[k]] (the weights' gradient: a weight and a pixel, a segment per
// image). `adds`: the sums begin with what c holds.
struct GatheredProduct {
  const float* a;
  const uint32_t* offsets;
  const uint32_t* depth_offsets;
  bool adds;
  size_t segments;
  size_t a_segment_step;
  const float* b;  // a row of `columns` per element of the depth
  float* c;
  size_t c_stride;
  size_t rows;
  size_t columns;  // padded
  size_t depth;
};

// c += a * b for groups of elements of c, where most of b is 0 and its other values are listed. Group g is
// c[c_offsets[g] ...] of `columns` floats, and term t adds values[t] * a[a_offsets[t] ...] to it: the terms
// up to ends[g] that an earlier group does not have, in their order, each by one fused multiply-add. Groups
// whose offsets ascend may overlap: their terms are added in the order of the groups. Sums have the bits of a
// product of all values, since what a zero adds changes nothing.
struct SparseProduct {
  const float* a;
  const uint32_t* a_offsets;
  const float* values;
  const uint32_t* ends;
  float* c;
  const uint32_t* c_offsets;
  size_t groups;
  size_t columns;  // padded
};

// The values of every row of x that are not 0, in their order, and what `offsets` holds at their columns. Row
// r has those up to ends[r] that an earlier row does not have. `values` and `found` have room for kLanes
// more.
struct NonzeroLists {
  const float* x;
  size_t x_stride;
  size_t rows;
  size_t columns;  // need not be padded
  const uint32_t* offsets;
  float* values;
  uint32_t* found;
  uint32_t* ends;
};

// Blocks of a RandomStream, see RandomStream::blocks().
struct RandomBlocks {
  uint32_t key[2];
  uint64_t lane;
  uint64_t position;
};

// mask = 0 where the draw is below `dropped_below`, elsewhere `scale`; out = x * mask.
struct Drop {
  const uint32_t* draws;
  uint32_t dropped_below;
  float scale;
  const float* x;
  size_t count;  // padded
  float* mask;
  float* out;
};

enum class Activation { kNone, kSign, kRelu, kHardtanh };  // sign(0) = +1; hardtanh clips to ±1

// Forward pass of batch norm and an activation in training: over `rows` rows,
//   normal = (x - mean) / sqrt(variance + epsilon), out = activation(normal * scale + shift).
// The variance is the biased one. Long sums are taken in runs of 256. A small x takes two passes for mean and
// variance; a large x one, as `moments` does, which is less exact.
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
  float* inverse_std;
};

// Backward pass: from the gradient of `out` to the gradients of x, scale and shift. A sign (straight-through)
// and a hardtanh pass gradients where their argument is within ±1, a ReLU where it is above 0.
struct NormBackward {
  const float* gradient;  // of out
  size_t rows;
  size_t columns;  // padded; also the stride
  const float* x;
  const float* mean;
  const float* inverse_std;
  const float* scale;
  const float* shift;
  Activation activation;
  float* scale_gradient;
  float* shift_gradient;
  float* x_gradient;  // may be `gradient` or x itself
};

// Batch norm, an activation and a 2 x 2 max pool in one pass over memory. Images are contiguous, without a
// border; a last odd row or column is dropped. Each window gives activation(x * factor + shift), with two
// roundings, of its pixel x for which that is largest. The gradient goes to that pixel, the first of equal
// ones; `chosen`, if given, receives its x, window by window.
struct NormPool {
  const float* x;
  size_t images;
  size_t height;
  size_t width;
  size_t channels;      // padded
  const float* factor;  // scale / standard deviation
  const float* shift;
  Activation activation;
  float* chosen;

  size_t windows() const { return (height / 2) * (width / 2); }  // of an image
};

// Layout of the pooled output: floats from one row, or image, to the next.
struct PoolSteps {
  size_t row_step;
  size_t image_step;
};

// Backward pass of NormPool, first step: sums over all windows. `gradient`, of the output, has no border.
struct NormPoolSums {
  const float* gradient;
  const float* mean;
  const float* inverse_std;
  float* sum;    // of gradient: the gradient of the shift
  float* along;  // of gradient * (chosen - mean) * inverse_std: the gradient of the scale
};

// Second step, with `slope` and `offset` computed from the sums: the gradient of x is x * slope + offset,
// plus gradient * factor at the chosen pixels.
struct NormPoolBackward {
  const float* gradient;
  const float* slope;
  const float* offset;
  float* x_gradient;  // may be x itself
};

// A bias, an activation and a 2 x 2 max pool of one image: each window gives its largest activation(x +
// bias). The gradient goes to that pixel, the first of equal ones, if it is within the activation's bounds
// and not on one. A last odd row or column is dropped. Images have no border.
struct BiasPool {
  const float* x;
  size_t height;
  size_t width;
  size_t channels;  // padded
  const float* bias;
  Activation activation;  // not kSign
};

// Exact products of 16-bit integers: for one-bit weights and activations, and gradients in fixed point. Two
// elements adjacent along the depth are adjacent in memory (a pair). c = factor * sums, or c += factor *
// sums. Sums must stay below 2^31.
//
// Row r of a begins at a + offsets[r]. The depth consists of `segments` segments of `pairs` pairs each; from
// one to the next a advances by a_segment_step, and b (a row of `columns` pairs per pair of the depth) by
// b_segment_step.
struct PairProduct {
  const int16_t* a;
  const uint32_t* offsets;
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
  int16_t* rounded_c = nullptr;  // if given, receives c instead, rounded as by quantise; `adds` is ignored
};

// The same product with a stored by depth: for every pair of the depth a row of a_stride integers, with a
// pair per row of c.
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
  int32_t* whole_c = nullptr;  // if given, receives the sums instead, without the factor
};

// The surrogate derivative of the sign in the backward pass, F'(x) = max(k (sqrt(2) t - t^2 |x|), 0).
struct Surrogate {
  float t;
  float k;
};

// Backward pass of out = sign(normal), normal = (x - mean) * inverse_std, with mean and standard deviation of
// all `count` values x.
struct SignBackward {
  const float* x;
  size_t count;
  float mean;
  float inverse_std;
  Surrogate surrogate;
  const float* gradient;  // of out
  float* x_gradient;
  bool streams;
  const float* other = nullptr;  // if given, is added to x_gradient
};

// One filter's weights as FedBNN blends them, see RotatedWeights, and the backward pass. All arrays have
// `count` floats with the filter's padding, which is 0 in all but the signs.
struct FilterBlend {
  const float* weights;  // standardised
  const float* rotated;
  const float* anchor;  // standardised
  float alpha;
  float beta;
  size_t count;
};

struct FilterBlendBackward {
  FilterBlend forward;
  Surrogate surrogate;
  const float* gradient;  // of the signs; g is the gradient of what they are the signs of
  float* kept;            // (1 - alpha - beta) g
  float* rotated;         // alpha g
  float of_alpha;         // out: sum of g (rotated - weights)
  float of_beta;          // out: sum of g (anchor - weights)
};

// weights = (fused - mean) / standard deviation, fused = lambda local + (1 - lambda) anchor.
struct FilterFuseBackward {
  const float* weights;
  const float* gradient;  // the gradient of weights is gradient + rotated_gradient
  const float* rotated_gradient;
  const float* local;
  const float* anchor;
  const float* mask;  // 1 where there is a weight, 0 in the padding
  size_t count;
  size_t used;  // without the padding
  float inverse_std;
  float lambda;
  float* local_gradient;
  float of_lambda;  // out
};

// Adam (Kingma and Ba, 2015; with the bias correction in the rate, as in Keras). `bound` > 0: the parameters
// are latent weights of signs, with no gradient beyond ±bound (straight-through), and are clipped to it after
// the step.
struct AdamStep {
  float* parameters;
  const float* gradient;
  float* first_moment;
  float* second_moment;
  size_t count;  // padded
  float rate;    // corrected for the step's number
  float beta1;
  float beta2;
  float rest1;  // 1 - beta1, computed in doubles
  float rest2;
  float epsilon;
  float bound;
};

// Gradient descent with momentum and weight decay: for a parameter p with gradient g and velocity v,
//   u = decays ? g + decay p : g,   v = momentum v + u,   p = p - rate v,
// each by one fused multiply-add.
struct MomentumStep {
  float* parameters;
  const float* gradient;
  float* velocity;
  size_t count;  // padded
  float rate;
  float momentum;
  float decay;
  bool decays;
};

// The bounds of an activation that clips: ReLU's 0 and infinity, hardtanh's ±1.
struct ClipBounds {
  float min;
  float max;
};

// The kernels of neural networks, one table per instruction set. All tables give the same bits. Kernels keep
// no state: threads may call them at once. Arrays of floats are aligned to 64 bytes.
struct NeuralKernels {
  const char* name;

  void (*multiply)(const Product& product);
  void (*multiply_gathered)(const GatheredProduct& product);
  void (*multiply_sparse)(const SparseProduct& product);
  size_t (*count_nonzeros)(const float* x, size_t count);
  void (*list_nonzeros)(const NonzeroLists& lists);
  // Four draws of every block.
  void (*draw)(const RandomBlocks& from, size_t blocks, uint32_t* draws);
  void (*drop)(const Drop& drop);
  void (*norm_forward)(const NormForward& norm);
  // Returns the largest magnitude of x_gradient, as largest_magnitude does.
  float (*norm_backward)(const NormBackward& norm);

  // Mean and biased variance of every column, from one pass over x.
  void (*moments)(const float* x, size_t rows, size_t columns, float* mean, float* variance);
  void (*norm_pool)(const NormPool& pool, const PoolSteps& offsets, float* out);
  void (*norm_pool_sums)(const NormPool& pool, const NormPoolSums& sums);
  void (*norm_pool_backward)(const NormPool& pool, const NormPoolBackward& back);

  void (*bias_pool)(const BiasPool& pool, float* out);
  // From the gradient of `out` to that of x, which may be x itself.
  void (*bias_pool_backward)(const BiasPool& pool, const float* gradient, ClipBounds bounds, float* to);

  void (*multiply_pairs)(const PairProduct& product);
  void (*sum_pairs)(const PairSum& product);
  // max(abs(x)), not a number if a value of x is not finite; and x * factor as 16-bit integers, rounded to
  // the nearest, ties to even: in sequence, or two x interleaved.
  float (*largest_magnitude)(const float* x, size_t count);
  void (*quantise)(const float* x, size_t count, float factor, int16_t* out);
  void (*quantise_pairs)(const float* even, const float* odd, size_t count, float factor, int16_t* out);
  // Two rows of signs as bits, see Images, interleaved as ±1.
  void (*sign_pairs)(const uint32_t* even, const uint32_t* odd, size_t pixels, size_t channels, int16_t* out);

  // Two rows of 16-bit integers, or of their signs (0 counts as +1), interleaved.
  void (*pair_shorts)(const int16_t* even, const int16_t* odd, size_t count, int16_t* out);
  void (*pair_signs)(const int16_t* even, const int16_t* odd, size_t count, int16_t* out);
  // Signs of a matrix, transposed in pairs of columns: the pair p of row r goes to to[p][r].
  void (*transpose_signs)(const int16_t* from, size_t rows, size_t columns, int16_t* to, size_t to_stride);

  // out = a + b clipped to the bounds; and the backward pass: the gradient, or 0 unless min < out < max.
  void (*add_clipped)(const float* a, const float* b, size_t count, ClipBounds bounds, float* out);
  void (*clip_backward)(const float* out, const float* gradient, size_t count, ClipBounds bounds, float* to);

  // parameters -= rate * gradient
  void (*descend)(float* parameters, const float* gradient, size_t count, float rate);
  void (*descend_with_momentum)(const MomentumStep& step);

  // out = activation(x * factor + shift) with two roundings, a factor and a shift per column: a trained layer
  // as it is deployed, in arithmetic that plain C can repeat.
  void (*affine)(const float* x, size_t rows, size_t columns, const float* factor, const float* shift,
                 Activation activation, float* out);

  // Softmax and cross-entropy of `rows` rows, of which the first `classes` columns are logits: the logits
  // become the gradient of the mean loss. A row's loss is log(sum) + margin, where sum = sum of exp(logit -
  // largest) and margin = largest - logit of the label.
  void (*softmax_loss)(float* logits, size_t rows, size_t columns, size_t classes, const uint16_t* labels,
                       float* sums, float* margins);

  void (*adam)(const AdamStep& step);

  // to = from, transposed. Rows of both are padded, and `to` has as many rows as `from` has columns with its
  // padding.
  void (*transpose)(const float* from, size_t rows, size_t columns, float* to, size_t to_stride);

  // out = x >= threshold ? 1 : -1.
  void (*signs)(const float* x, size_t count, float threshold, float* out);

  void (*add)(const float* x, const float* y, size_t count, float* sum);
  // x * a + y * b, the first product fused.
  void (*combine)(const float* x, float a, const float* y, float b, size_t count, float* out);
  // Of `used` values; `count` includes padding of zeros, where the mask is 0 (null: no padding). The mean is
  // taken of sixteen sums of doubles, value i in sum i % 16, added up by halves: plain C can repeat it, and
  // another order almost certainly gives the same float.
  float (*mean)(const float* x, size_t count, size_t used);
  float (*standard_deviation)(const float* x, size_t count, const float* mask, size_t used, float mean);
  // (x - mean) * factor where the mask is 1, 0 elsewhere.
  void (*standardise)(const float* x, size_t count, const float* mask, float mean, float factor, float* out);
  void (*sign_backward)(const SignBackward& sign);
  // weights + alpha (rotated - weights) + beta (anchor - weights)
  void (*blend_filter)(const FilterBlend& blend, float* blended);
  void (*blend_filter_backward)(FilterBlendBackward* blend);
  void (*fuse_filter_backward)(FilterFuseBackward* fuse);
};

// The table for the instruction set of kernels().
const NeuralKernels& neural_kernels();

// All tables that this CPU can run, the scalar one first.
std::vector<const NeuralKernels*> supported_neural_kernels();

}  // namespace bitfed
