#pragma once

#include <span>

#include "bitfed/cuda/device.h"
#include "bitfed/nn/kernels/kernels.h"

// What a cohort's training step is made of: one launch or a few for all clients at once. Every function gives
// the bits of the CPU's layer of the same name. Values of client g lie `step` floats behind those of client
// 0; a batch is [image][row][column][channel] without borders, channels padded to kLanes but for a network's
// input.
namespace bitfed::cuda {

struct Cohort {
  uint32_t clients;
  uint32_t batch;          // images of a full batch
  const uint32_t* images;  // of each client's batch in this step; 0: the client takes no step
};

// Images of a layer.
struct Extent {
  uint32_t height = 1;
  uint32_t width = 1;
  uint32_t channels = 1;

  BITFED_HOST_DEVICE size_t pixels() const { return size_t{height} * width; }
  BITFED_HOST_DEVICE size_t floats() const { return pixels() * channels; }
};

// A value per client: parameters and their gradients lie in one array per client.
struct OfClient {
  float* first = nullptr;
  size_t step = 0;

  BITFED_HOST_DEVICE float* at(size_t client) const { return first + client * step; }
};

// ------------------------------------------------------------------------------------------------ batch norm
struct Norm {
  Extent in;
  Activation activation = Activation::kNone;
  const float* x = nullptr;
  const int16_t* whole_x = nullptr;  // instead, where x has whole numbers; not with a pool
  float* out = nullptr;
  const float* added =
      nullptr;  // a shortcut that is added behind the activation; the sum is clipped to the bounds
  ClipBounds bounds{};
  OfClient scale, shift, mean, variance;    // mean and variance: the running ones
  OfClient scale_gradient, shift_gradient;  // of the parameters
  float* partial = nullptr;                 // [client][run][2][channel]
  float* batch = nullptr;  // [client][6][channel]: mean, inverse deviation, and what the passes need
};

size_t norm_partial_floats(const Cohort& cohort, const Extent& in);
size_t norm_batch_floats(const Cohort& cohort, const Extent& in);
struct Signs;
// signs: null, or what follows on `out` alone, about the mean of each image.
void norm_forward(const Cohort& cohort, const Norm& norm, const Signs* signs, const Stream& stream);
// `gradient`: of out. x_gradient may be x or the gradient. `largest`: a word per client that becomes at least
// the bits of the largest magnitude; null: not wanted.
void norm_backward(const Cohort& cohort, const Norm& norm, const float* gradient, float* x_gradient,
                   uint32_t* largest, const Stream& stream);

// Batch norm, activation and a 2 x 2 max pool.
struct PooledNorm {
  Norm norm;  // its `out` has half the height and width
  float* chosen = nullptr;

  BITFED_HOST_DEVICE Extent out() const { return {norm.in.height / 2, norm.in.width / 2, norm.in.channels}; }
};

void pooled_norm_forward(const Cohort& cohort, const PooledNorm& norm, const Stream& stream);
// x_gradient: null if it is not wanted.
void pooled_norm_backward(const Cohort& cohort, const PooledNorm& norm, const float* gradient,
                          float* x_gradient, const Stream& stream);

// ------------------------------------------------------------------------------------------------ signs
struct Signs {
  Extent in;
  const float* x = nullptr;
  int8_t* signs = nullptr;
  float* means = nullptr;  // [client][image][4]: mean, inverse deviation, and two means of the backward pass
  bool running = false;    // about the mean of the batch, not of each image
  bool clips = false;      // x was clipped: its gradient is 0 unless it is within the bounds
  ClipBounds bounds{};
  OfClient running_mean;
};

void signs_forward(const Cohort& cohort, const Signs& signs, const Stream& stream);
// The last pass of norm_forward(), and the signs.
void norm_signs(const Cohort& cohort, const Norm& norm, const Signs& signs, const Stream& stream);
// other: null, or is added to x_gradient, which it may be.
void signs_backward(const Cohort& cohort, const Signs& signs, const float* gradient, const float* other,
                    float* x_gradient, const Stream& stream);

// ------------------------------------------------------------------------------------------------
// convolutions
struct Kernel {
  uint32_t side = 3;
  uint32_t stride = 1;
  uint32_t padding = 1;

  BITFED_HOST_DEVICE uint32_t taps() const { return side * side; }
};

// Of real inputs and weights [tap][input channel][filter].
struct RealConvolution {
  Kernel kernel;
  Extent in, out;
  const float* x = nullptr;
  float* y = nullptr;
  OfClient weights, gradient;
  bool tf32 = false;         // on the tensor cores, see tf32_products.h
  float* partial = nullptr;  // then: tf32_partial_floats() of them, if any
};

void real_convolution_forward(const Cohort& cohort, const RealConvolution& convolution, const Stream& stream);
// From the gradient of y to that of the weights; and to that of x, to which it adds if `adds`.
void real_convolution_weights(const Cohort& cohort, const RealConvolution& convolution, const float* gradient,
                              const Stream& stream);
void real_convolution_input(const Cohort& cohort, const RealConvolution& convolution, const float* gradient,
                            bool adds, float* x_gradient, const Stream& stream);

// Of signs with signs, on the tensor cores.
struct SignConvolution {
  Kernel kernel;
  Extent in, out;
  const int8_t* x = nullptr;
  float* y = nullptr;
  int16_t* whole_y = nullptr;       // instead: half the bytes
  const int8_t* weights = nullptr;  // [client][filter][tap][input channel]
  int8_t* transposed =
      nullptr;             // [client][input channel][tap][filter], the taps by phase, each phase's last first
  int8_t* high = nullptr;  // gradients of y in fixed point, 256 * high + low, a byte without sign
  int8_t* low = nullptr;
  // Bytes by channel and row of the image, see sign_gradients.cu: [client][filter][row of y][line], and
  // [client][column of the kernel][input channel][row of x][line].
  int8_t* high_lines = nullptr;
  int8_t* low_lines = nullptr;
  int8_t* sign_lines = nullptr;
  float* factor =
      nullptr;  // [client]: of the fixed point; 0 or not a number where there is nothing to multiply
  uint32_t* largest = nullptr;  // [client]: the bits of the largest gradient of y
  int32_t* sums = nullptr;      // [client][filter][tap][input channel]: of the weights' gradients

  // The bytes of a line: a row of every image of the batch.
  BITFED_HOST_DEVICE uint32_t line(const Cohort& cohort) const {
    return (cohort.batch * out.width + 15) / 16 * 16;
  }
};

void sign_convolution_forward(const Cohort& cohort, const SignConvolution& convolution, const Stream& stream);
// The largest magnitude of the gradient, where the layer behind has not said it.
void sign_convolution_largest(const Cohort& cohort, const SignConvolution& convolution, const float* gradient,
                              const Stream& stream);
// The weights for sign_convolution_input().
void sign_convolution_transpose(const Cohort& cohort, const SignConvolution& convolution,
                                const Stream& stream);
// The gradient of y in fixed point, for what follows. Needs `largest`.
void sign_convolution_quantise(const Cohort& cohort, const SignConvolution& convolution,
                               const float* gradient, bool for_input, const Stream& stream);
// Leaves the weights' gradients in `sums`.
void sign_convolution_weights(const Cohort& cohort, const SignConvolution& convolution, const Stream& stream);
// The gradient of x; with `adds` it is added to.
void sign_convolution_input(const Cohort& cohort, const SignConvolution& convolution, bool adds,
                            float* x_gradient, const Stream& stream);

// ------------------------------------------------------------------------------------------------ rotated
// weights
struct FilterMatrix {  // a filter as a matrix, see FilterShape and Filters
  uint32_t rows, columns, stride;

  BITFED_HOST_DEVICE uint32_t floats() const { return rows * stride; }
};

struct Rotated {
  uint32_t filters = 0;
  uint32_t inputs = 0;
  uint32_t weights_stride = 0;  // of a filter in `weights`
  FilterMatrix shape{};
  uint32_t r1_stride = 0;  // of a row
  bool lambda = false;
  bool beta = false;
  bool rotates = true;
  bool orthogonal = false;  // R becomes orthogonal where the anchor is set
  OfClient weights, theta, lambdas, gamma, r1, r2;
  OfClient weights_gradient, theta_gradient, lambda_gradient, gamma_gradient;
  const Surrogate* surrogates = nullptr;  // [client]
  // [client][filter][matrix]
  float* anchor = nullptr;
  float* anchor_standard = nullptr;
  float* standard = nullptr;
  float* rotated = nullptr;
  int8_t* rotations = nullptr;        // [client][forward, back]: R2 and R1 in fixed point, see take_rotations
  float* rotation_factors = nullptr;  // [client][forward, back][R2, R1]
  int8_t* scratch = nullptr;          // where shared memory is too small
  float* inverse = nullptr;           // [client][filter]: 1 / standard deviation
  float* alphas = nullptr;            // [client][filter]: |sin theta|
  float* largest_of_filters = nullptr;  // [client][filter]: of what is rotated
  float* pulls = nullptr;               // [client][filter][2]: the gradients of beta and lambda
  int8_t* signs = nullptr;              // [client][filter][input]
  OfClient sign_weights;                // instead: [input][filter] as floats, `sign_stride` apart
  uint32_t sign_stride = 0;
  // The gradient of the signs: sums / factor, or floats laid out as sign_weights.
  const int32_t* sums = nullptr;
  const float* factor = nullptr;
  const uint32_t* largest = nullptr;
  OfClient sign_gradient;
};

// Memory that a layer needs besides; `scratch`: none if it is 0.
size_t rotated_rotation_bytes(const Rotated& rotated);  // of a client
size_t rotated_scratch_bytes(const Rotated& rotated, uint32_t clients);

// For all layers at once: `layers` lies on the device, `count` of them.
struct RotatedPlan {
  const Rotated* layers = nullptr;
  uint32_t count = 0;
  uint32_t max_filters = 0;
  bool rotates = false;  // some layer
  bool pulls = false;    // some layer has lambda or beta
  size_t shared = 0;     // bytes of shared memory
};

RotatedPlan plan_rotated(std::span<const Rotated> layers);
// Clients by the bits of `mask`.
void rotated_set_anchor(const Cohort& cohort, const RotatedPlan& plan, uint64_t mask, const Stream& stream);
void rotated_fuse(const Cohort& cohort, const RotatedPlan& plan, uint64_t mask, const Stream& stream);
// Where R1 or R2 changed, before the forward pass.
void take_rotations(const Cohort& cohort, const RotatedPlan& plan, uint64_t mask, const Stream& stream);
void rotated_forward(const Cohort& cohort, const RotatedPlan& plan, const Stream& stream);
void rotated_backward(const Cohort& cohort, const RotatedPlan& plan, const Stream& stream);

// RotationSearch for one layer; see search.cu.
struct Search {
  Rotated layer;
  uint32_t run = 0;  // filters that are summed as integers
  // [client][filter]: W transposed, R1' W, and the signs transposed, see planes.h
  int8_t* weights = nullptr;
  int8_t* halfway = nullptr;
  int8_t* signs = nullptr;
  float* weight_factors = nullptr;  // [client][filter]
  uint32_t* longest = nullptr;      // [client][2]: bits of the longest column and filter
  float* partial = nullptr;         // [client][run][rows of R1, squared]
  int8_t* scratch = nullptr;        // where shared memory is too small
  size_t scratch_step = 0;          // bytes of a client and run

  BITFED_HOST_DEVICE uint32_t runs() const { return (layer.filters + run - 1) / run; }
};

// For all layers at once: `searches` lies on the device, `count` of them.
struct SearchPlan {
  const Search* searches = nullptr;
  uint32_t count = 0;
  uint32_t max_runs = 0;
  uint32_t max_filters = 0;
  size_t filter_shared = 0;  // bytes of shared memory
  size_t run_shared = 0;
  size_t polar_shared = 0;
};

Search make_search(const Rotated& layer);           // without its memory
size_t search_weights_bytes(const Search& search);  // of a filter
size_t search_halfway_bytes(const Search& search);
size_t search_signs_bytes(const Search& search);
SearchPlan plan_search(const std::vector<Search>& searches);
void make_rotations_orthogonal(const Cohort& cohort, const SearchPlan& plan, uint64_t mask,
                               const Stream& stream);
// Takes the rotations that it finds, too.
void search_rotations(const Cohort& cohort, const SearchPlan& plan, const RotatedPlan& rotated,
                      uint32_t iterations, uint64_t mask, const Stream& stream);

// ------------------------------------------------------------------------------------------------ other
// layers
struct Pool {
  Extent in, out;
  uint32_t window_height = 2;
  uint32_t window_width = 2;
};

void load_images(const Cohort& cohort, const Extent& image, uint32_t stored_channels, const uint8_t* pixels,
                 const float* inputs_of_pixels, float* x, const Stream& stream);
void max_pool_forward(const Cohort& cohort, const Pool& pool, const float* x, float* y, uint16_t* chosen,
                      const Stream& stream);
void max_pool_backward(const Cohort& cohort, const Pool& pool, const float* gradient, const uint16_t* chosen,
                       float* x_gradient, const Stream& stream);
void average_pool_forward(const Cohort& cohort, const Pool& pool, const float* x, float* y,
                          const Stream& stream);
void average_pool_backward(const Cohort& cohort, const Pool& pool, const float* gradient, float* x_gradient,
                           const Stream& stream);
// y = activation(x + bias), a bias per channel or none.
void activation_forward(const Cohort& cohort, const Extent& extent, Activation activation, const float* x,
                        const OfClient& bias, float* y, const Stream& stream);
// By the output; `to` may be the gradient.
void activation_backward(const Cohort& cohort, const Extent& extent, ClipBounds bounds, const float* y,
                         const float* gradient, float* to, const Stream& stream);
void bias_backward(const Cohort& cohort, const Extent& extent, const float* gradient, float* image_sums,
                   const OfClient& bias_gradient, const Stream& stream);
void multiply_values(const Cohort& cohort, const Extent& extent, const float* x, const float* mask, float* y,
                     const Stream& stream);
void add_clipped(const Cohort& cohort, const Extent& extent, const float* a, const float* b,
                 ClipBounds bounds, float* out, const Stream& stream);

struct Dense {
  uint32_t inputs = 0;
  uint32_t units = 0;
  const float* x = nullptr;
  float* y = nullptr;  // padded units
  OfClient weights, bias, gradient, bias_gradient;
  bool has_bias = false;
};

void dense_forward(const Cohort& cohort, const Dense& dense, const Stream& stream);
void dense_backward(const Cohort& cohort, const Dense& dense, const float* gradient, float* x_gradient,
                    const Stream& stream);

// Softmax and cross-entropy. `diverged` of a client becomes 1 where a loss is not finite.
void softmax_loss(const Cohort& cohort, uint32_t columns, uint32_t classes, const float* logits,
                  const uint16_t* labels, float* gradient, uint32_t* diverged, const Stream& stream);

struct ClientDescent {
  float rate = 0;
  float momentum = 0;
  float decay = 0;
  uint32_t steps = 0;  // 0: the client's parameters stay
};

// Of sixteen neighbouring parameters, whether they are learned, and decay.
enum ParameterFlags : uint8_t { kLearned = 1, kDecays = 2 };

void descend(uint32_t clients, size_t floats, const uint8_t* flags, const ClientDescent* descents,
             float* parameters, const float* gradient, float* velocity, const Stream& stream);

}  // namespace bitfed::cuda
