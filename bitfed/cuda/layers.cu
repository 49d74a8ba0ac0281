// Pools, activations, dense layers, the loss and the descent: a thread a value.

#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/lanes.h"

namespace bitfed::cuda {
namespace {

constexpr unsigned kThreads = 256;

// The client and the index of the thread's value among `per_image` values of each image.
struct Place {
  uint32_t client;
  size_t at;     // among the client's
  size_t whole;  // among all
  bool inside;
};

BITFED_FORMULA Place place_of(const Cohort& cohort, size_t per_image) {
  Place place;
  place.client = blockIdx.y;
  place.at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  place.inside = place.at < cohort.images[place.client] * per_image;
  place.whole = place.client * cohort.batch * per_image + place.at;
  return place;
}

Blocks blocks_of(const Cohort& cohort, size_t per_image) {
  return {(cohort.batch * per_image + kThreads - 1) / kThreads, cohort.clients};
}

// `stored`: channels of x, of which the last have no pixels and stay 0.
__global__ void load_all(Cohort cohort, Extent image, uint32_t stored, const uint8_t* pixels,
                         const float* inputs, float* x) {
  const Place p = place_of(cohort, image.floats());
  if (!p.inside) return;
  const uint32_t c = static_cast<uint32_t>(p.at % image.channels);
  x[p.whole / image.channels * stored + c] = inputs[c * 256 + pixels[p.whole]];
}

struct PoolPlace {
  size_t image, y, x;
  uint32_t c;
};

BITFED_FORMULA PoolPlace pool_place(size_t at, const Extent& extent) {
  const size_t pixel = at / extent.channels;
  return {pixel / extent.pixels(), pixel / extent.width % extent.height, pixel % extent.width,
          static_cast<uint32_t>(at % extent.channels)};
}

__global__ void max_pool(Cohort cohort, Pool pool, const float* x, float* y, uint16_t* chosen) {
  const Place p = place_of(cohort, pool.out.floats());
  if (!p.inside) return;
  const PoolPlace o = pool_place(p.at, pool.out);
  const float* from = x + (p.client * cohort.batch + o.image) * pool.in.floats() + o.c;
  float largest = 0;
  uint16_t which = 0;
  for (uint32_t i = 0; i < pool.window_height * pool.window_width; ++i) {
    const size_t row = o.y * pool.window_height + i / pool.window_width;
    const size_t column = o.x * pool.window_width + i % pool.window_width;
    const float value = from[(row * pool.in.width + column) * pool.in.channels];
    const bool larger = i == 0 || value > largest;
    largest = larger ? value : largest;
    which = larger ? static_cast<uint16_t>(i) : which;
  }
  y[p.whole] = largest;
  chosen[p.whole] = which;
}

// A thread per value of x.
__global__ void max_pool_back(Cohort cohort, Pool pool, const float* gradient, const uint16_t* chosen,
                              float* x_gradient) {
  const Place p = place_of(cohort, pool.in.floats());
  if (!p.inside) return;
  const PoolPlace i = pool_place(p.at, pool.in);
  const size_t y = i.y / pool.window_height;
  const size_t x = i.x / pool.window_width;
  float value = 0;
  if (y < pool.out.height && x < pool.out.width) {
    const size_t at = (p.client * cohort.batch + i.image) * pool.out.floats() +
                      (y * pool.out.width + x) * pool.out.channels + i.c;
    const size_t own = i.y % pool.window_height * pool.window_width + i.x % pool.window_width;
    if (chosen[at] == own) value = gradient[at];
  }
  x_gradient[p.whole] = value;
}

__global__ void average_pool(Cohort cohort, Pool pool, const float* x, float* y) {
  const Place p = place_of(cohort, pool.out.floats());
  if (!p.inside) return;
  const PoolPlace o = pool_place(p.at, pool.out);
  const float* from = x + (p.client * cohort.batch + o.image) * pool.in.floats() + o.c;
  float sum = 0;
  for (uint32_t row = 0; row < pool.window_height; ++row) {
    for (uint32_t column = 0; column < pool.window_width; ++column) {
      const size_t pixel =
          (o.y * pool.window_height + row) * pool.in.width + o.x * pool.window_width + column;
      sum = sum + from[pixel * pool.in.channels];
    }
  }
  y[p.whole] = sum / static_cast<float>(pool.window_height * pool.window_width);
}

__global__ void average_pool_back(Cohort cohort, Pool pool, const float* gradient, float* x_gradient) {
  const Place p = place_of(cohort, pool.in.floats());
  if (!p.inside) return;
  const PoolPlace i = pool_place(p.at, pool.in);
  const size_t y = i.y / pool.window_height;
  const size_t x = i.x / pool.window_width;
  const bool pooled = y < pool.out.height && x < pool.out.width;
  const size_t at = (p.client * cohort.batch + i.image) * pool.out.floats() +
                    (y * pool.out.width + x) * pool.out.channels + i.c;
  x_gradient[p.whole] =
      pooled ? gradient[at] / static_cast<float>(pool.window_height * pool.window_width) : 0.0f;
}

__global__ void activate_all(Cohort cohort, Extent extent, Activation activation, const float* x,
                             OfClient bias, float* y) {
  const Place p = place_of(cohort, extent.floats());
  if (!p.inside) return;
  const float shift = bias.first == nullptr ? 0.0f : bias.at(p.client)[p.at % extent.channels];
  y[p.whole] = activate(activation, x[p.whole] * 1.0f + shift);
}

// Four values a thread.
__global__ void activate_back(Cohort cohort, Extent extent, ClipBounds bounds, const float4* y,
                              const float4* gradient, float4* to) {
  const Place p = place_of(cohort, extent.floats() / 4);
  if (!p.inside) return;
  const float4 v = y[p.whole];
  const float4 g = gradient[p.whole];
  const auto back = [&](float value, float own) {
    const float below = value >= bounds.max ? 0.0f : own;
    return bounds.min >= value ? 0.0f : below;
  };
  to[p.whole] = float4{back(v.x, g.x), back(v.y, g.y), back(v.z, g.z), back(v.w, g.w)};
}

__global__ void bias_image_sums(Cohort cohort, Extent extent, const float* gradient, float* sums) {
  const Place p = place_of(cohort, extent.channels);
  if (!p.inside) return;
  const size_t image = p.at / extent.channels;
  const float* from = gradient + (p.client * cohort.batch + image) * extent.floats() + p.at % extent.channels;
  float sum = 0;
  for (size_t i = 0; i < extent.pixels(); ++i) sum = __fmaf_rn(1.0f, from[i * extent.channels], sum);
  sums[p.whole] = sum;
}

__global__ void bias_sums(Cohort cohort, Extent extent, const float* sums, OfClient gradient) {
  const uint32_t client = blockIdx.y;
  const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= extent.channels || cohort.images[client] == 0) return;
  const float* from = sums + client * size_t{cohort.batch} * extent.channels + c;
  float sum = 0;
  for (uint32_t image = 0; image < cohort.images[client]; ++image) sum = sum + from[image * extent.channels];
  gradient.at(client)[c] = sum;
}

__global__ void multiply_all(Cohort cohort, Extent extent, const float* x, const float* mask, float* y) {
  const Place p = place_of(cohort, extent.floats());
  if (p.inside) y[p.whole] = x[p.whole] * mask[p.whole];
}

__global__ void add_all(Cohort cohort, Extent extent, const float* a, const float* b, ClipBounds bounds,
                        float* out) {
  const Place p = place_of(cohort, extent.floats());
  if (!p.inside) return;
  const Lanes sum = all(a[p.whole]) + all(b[p.whole]);
  out[p.whole] = smaller(all(bounds.max), larger(all(bounds.min), sum)).v;
}

BITFED_HOST_DEVICE uint32_t padded_units(const Dense& d) {
  return static_cast<uint32_t>(padded(d.units));
}

__global__ void dense_product(Cohort cohort, Dense d) {
  const uint32_t stride = padded_units(d);
  const Place p = place_of(cohort, stride);
  if (!p.inside) return;
  const uint32_t unit = static_cast<uint32_t>(p.at % stride);
  const float* x = d.x + (p.client * size_t{cohort.batch} + p.at / stride) * d.inputs;
  const float* weights = d.weights.at(p.client) + unit;
  float sum = 0;
#pragma unroll 8
  for (uint32_t i = 0; i < d.inputs; ++i) sum = __fmaf_rn(x[i], weights[size_t{i} * stride], sum);
  if (d.has_bias && unit < d.units) sum = sum + d.bias.at(p.client)[unit];
  d.y[p.whole] = sum;
}

__global__ void dense_weights(Cohort cohort, Dense d, const float* gradient) {
  const uint32_t stride = padded_units(d);
  const uint32_t client = blockIdx.y;
  const size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const size_t weights = size_t{d.inputs} * stride;
  const uint32_t images = cohort.images[client];
  if (images == 0 || at >= weights + (d.has_bias ? stride : 0)) return;
  const uint32_t unit = static_cast<uint32_t>(at % stride);
  const float* of_y = gradient + client * size_t{cohort.batch} * stride + unit;
  float sum = 0;
  if (at >= weights) {
    for (uint32_t image = 0; image < images; ++image) sum = sum + of_y[size_t{image} * stride];
    if (unit < d.units) d.bias_gradient.at(client)[unit] = sum;
    return;
  }
  const float* x = d.x + client * size_t{cohort.batch} * d.inputs + at / stride;
#pragma unroll 8
  for (uint32_t image = 0; image < images; ++image)
    sum = __fmaf_rn(x[size_t{image} * d.inputs], of_y[size_t{image} * stride], sum);
  d.gradient.at(client)[at] = sum;
}

__global__ void dense_input(Cohort cohort, Dense d, const float* gradient, float* x_gradient) {
  const Place p = place_of(cohort, d.inputs);
  if (!p.inside) return;
  const uint32_t stride = padded_units(d);
  const float* of_y = gradient + (p.client * size_t{cohort.batch} + p.at / d.inputs) * stride;
  const float* weights = d.weights.at(p.client) + p.at % d.inputs * stride;
  float sum = 0;
  for (uint32_t unit = 0; unit < d.units; ++unit) sum = __fmaf_rn(of_y[unit], weights[unit], sum);
  x_gradient[p.whole] = sum;
}

// A thread per image, with the CPU's sixteen lanes as an array.
__global__ void loss_of_all(Cohort cohort, uint32_t columns, uint32_t classes, const float* logits,
                            const uint16_t* labels, float* gradients, uint32_t* diverged) {
  const Place p = place_of(cohort, 1);
  if (!p.inside) return;
  const float* row = logits + p.whole * columns;
  float* gradient = gradients + p.whole * columns;
  const float share = 1.0f / static_cast<float>(cohort.images[p.client]);
  const uint32_t label = labels[p.whole];
  float lanes[16];
  for (uint32_t i = 0; i < 16; ++i) lanes[i] = -3e38f;
  for (uint32_t column = 0; column < columns; ++column)
    lanes[column % 16] = larger(all(lanes[column % 16]), all(column < classes ? row[column] : -3e38f)).v;
  float largest = lanes[0];
  for (uint32_t i = 1; i < 16; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  for (uint32_t i = 0; i < 16; ++i) lanes[i] = 0;
  for (uint32_t column = 0; column < columns; ++column) {
    const float counted = column < classes ? exponential(all(row[column] - largest)).v : 0.0f;
    gradient[column] = counted;
    lanes[column % 16] = lanes[column % 16] + counted;
  }
  const float sum = sum_by_halves(lanes);
  const float factor = share / sum;
  for (uint32_t column = 0; column < columns; ++column) gradient[column] = gradient[column] * factor;
  gradient[label] = gradient[label] - share;
  const float margin = largest - row[label];
  const auto finite = [](float value) { return (__float_as_uint(value) & 0x7fffffffu) < 0x7f800000u; };
  if (!finite(sum) || !finite(margin)) diverged[p.client] = 1;
}

__global__ void descend_all(size_t floats, const uint8_t* flags, const ClientDescent* descents,
                            float* parameters, const float* gradients, float* velocities) {
  const ClientDescent d = descents[blockIdx.y];
  const size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (d.steps == 0 || at >= floats) return;
  const uint8_t flag = flags[at / 16];
  if ((flag & kLearned) == 0) return;
  const size_t whole = blockIdx.y * floats + at;
  const float gradient = gradients[whole];
  if (d.momentum == 0 && d.decay == 0) {
    parameters[whole] = __fmaf_rn(-d.rate, gradient, parameters[whole]);
    return;
  }
  const float parameter = parameters[whole];
  const float pulled = (flag & kDecays) != 0 ? __fmaf_rn(d.decay, parameter, gradient) : gradient;
  const float velocity = __fmaf_rn(d.momentum, velocities[whole], pulled);
  velocities[whole] = velocity;
  parameters[whole] = __fmaf_rn(-d.rate, velocity, parameter);
}

}  // namespace

void load_images(const Cohort& cohort, const Extent& image, uint32_t stored_channels, const uint8_t* pixels,
                 const float* inputs_of_pixels, float* x, const Stream& stream) {
  launch(load_all, blocks_of(cohort, image.floats()), kThreads, 0, stream, cohort, image, stored_channels,
         pixels, inputs_of_pixels, x);
}

void max_pool_forward(const Cohort& cohort, const Pool& pool, const float* x, float* y, uint16_t* chosen,
                      const Stream& stream) {
  launch(max_pool, blocks_of(cohort, pool.out.floats()), kThreads, 0, stream, cohort, pool, x, y, chosen);
}

void max_pool_backward(const Cohort& cohort, const Pool& pool, const float* gradient, const uint16_t* chosen,
                       float* x_gradient, const Stream& stream) {
  launch(max_pool_back, blocks_of(cohort, pool.in.floats()), kThreads, 0, stream, cohort, pool, gradient,
         chosen, x_gradient);
}

void average_pool_forward(const Cohort& cohort, const Pool& pool, const float* x, float* y,
                          const Stream& stream) {
  launch(average_pool, blocks_of(cohort, pool.out.floats()), kThreads, 0, stream, cohort, pool, x, y);
}

void average_pool_backward(const Cohort& cohort, const Pool& pool, const float* gradient, float* x_gradient,
                           const Stream& stream) {
  launch(average_pool_back, blocks_of(cohort, pool.in.floats()), kThreads, 0, stream, cohort, pool, gradient,
         x_gradient);
}

void activation_forward(const Cohort& cohort, const Extent& extent, Activation activation, const float* x,
                        const OfClient& bias, float* y, const Stream& stream) {
  launch(activate_all, blocks_of(cohort, extent.floats()), kThreads, 0, stream, cohort, extent, activation, x,
         bias, y);
}

void activation_backward(const Cohort& cohort, const Extent& extent, ClipBounds bounds, const float* y,
                         const float* gradient, float* to, const Stream& stream) {
  const auto fours = [](const float* p) { return reinterpret_cast<const float4*>(p); };
  launch(activate_back, blocks_of(cohort, extent.floats() / 4), kThreads, 0, stream, cohort, extent, bounds,
         fours(y), fours(gradient), reinterpret_cast<float4*>(to));
}

void bias_backward(const Cohort& cohort, const Extent& extent, const float* gradient, float* image_sums,
                   const OfClient& bias_gradient, const Stream& stream) {
  launch(bias_image_sums, blocks_of(cohort, extent.channels), kThreads, 0, stream, cohort, extent, gradient,
         image_sums);
  launch(bias_sums, Blocks{(extent.channels + 63) / 64, cohort.clients}, 64, 0, stream, cohort, extent,
         image_sums, bias_gradient);
}

void multiply_values(const Cohort& cohort, const Extent& extent, const float* x, const float* mask, float* y,
                     const Stream& stream) {
  launch(multiply_all, blocks_of(cohort, extent.floats()), kThreads, 0, stream, cohort, extent, x, mask, y);
}

void add_clipped(const Cohort& cohort, const Extent& extent, const float* a, const float* b,
                 ClipBounds bounds, float* out, const Stream& stream) {
  launch(add_all, blocks_of(cohort, extent.floats()), kThreads, 0, stream, cohort, extent, a, b, bounds, out);
}

void dense_forward(const Cohort& cohort, const Dense& dense, const Stream& stream) {
  launch(dense_product, blocks_of(cohort, padded_units(dense)), kThreads, 0, stream, cohort, dense);
}

void dense_backward(const Cohort& cohort, const Dense& dense, const float* gradient, float* x_gradient,
                    const Stream& stream) {
  const size_t weights = (size_t{dense.inputs} + 1) * padded_units(dense);
  launch(dense_weights, Blocks{(weights + kThreads - 1) / kThreads, cohort.clients}, kThreads, 0, stream,
         cohort, dense, gradient);
  if (x_gradient == nullptr) return;
  launch(dense_input, blocks_of(cohort, dense.inputs), kThreads, 0, stream, cohort, dense, gradient,
         x_gradient);
}

void softmax_loss(const Cohort& cohort, uint32_t columns, uint32_t classes, const float* logits,
                  const uint16_t* labels, float* gradient, uint32_t* diverged, const Stream& stream) {
  launch(loss_of_all, Blocks{(cohort.batch + 31) / 32, cohort.clients}, 32, 0, stream, cohort, columns,
         classes, logits, labels, gradient, diverged);
}

void descend(uint32_t clients, size_t floats, const uint8_t* flags, const ClientDescent* descents,
             float* parameters, const float* gradient, float* velocity, const Stream& stream) {
  launch(descend_all, Blocks{(floats + kThreads - 1) / kThreads, clients}, kThreads, 0, stream, floats, flags,
         descents, parameters, gradient, velocity);
}

}  // namespace bitfed::cuda
