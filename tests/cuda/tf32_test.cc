// Convolutions on the tensor cores beside those in the CPU's order: near them, and the same bits every time
// and for any number of clients.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/cuda/cuda_trainer.h"
#include "bitfed/cuda/tf32_products.h"

namespace bitfed {
namespace {

struct Shape {
  const char* name;
  uint32_t side, channels, filters;  // of the images
  cuda::Kernel kernel;
  uint32_t images = 3;
};

std::vector<float> normal(size_t count, uint64_t seed) {
  RandomStream draws({seed, "normal"});
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(draws.normal());
  return values;
}

class Tf32Test : public testing::TestWithParam<Shape> {
 protected:
  // y, the gradient of the weights, and that of x, which is added to 1 if `adds`; of every client. All have
  // the same values. Two thirds of the batch are there.
  struct Results {
    std::vector<std::vector<float>> of_y, of_weights, of_x;
  };

  static Results results(const Shape& of, uint32_t clients, bool tf32, bool adds) {
    cuda::RealConvolution c;
    c.kernel = of.kernel;
    c.in = {of.side, of.side, of.channels};
    const uint32_t out = (of.side + 2 * of.kernel.padding - of.kernel.side) / of.kernel.stride + 1;
    c.out = {out, out, of.filters};
    c.tf32 = tf32;
    const uint32_t batch = of.images + of.images / 2;
    const size_t inputs = batch * c.in.floats();
    const size_t outputs = batch * c.out.floats();
    const size_t weights = size_t{c.kernel.taps()} * of.channels * of.filters;
    cuda::Stream stream;
    const auto filled = [&](const std::vector<float>& values) {
      cuda::Array<float> array(clients * values.size());
      for (size_t client = 0; client < clients; ++client)
        stream.copy_to_device(array.data() + client * values.size(), values.data(),
                              values.size() * sizeof(float));
      stream.synchronise();
      return array;
    };
    const auto x = filled(normal(inputs, 1));
    const auto w = filled(normal(weights, 2));
    const auto gradient = filled(normal(outputs, 3));
    const auto y = filled(std::vector<float>(outputs, NAN));
    const auto of_w = filled(std::vector<float>(weights, NAN));
    const auto of_x = filled(std::vector<float>(inputs, adds ? 1.0f : NAN));
    const std::vector<uint32_t> images(clients, of.images);
    const cuda::Array<uint32_t> on_device(clients);
    stream.copy_to_device(on_device.data(), images.data(), on_device.bytes());
    const cuda::Cohort cohort{clients, batch, on_device.data()};
    const cuda::Array<float> partial(cuda::tf32_partial_floats(cohort, c) + 1);
    if (cuda::tf32_partial_floats(cohort, c) > 0) c.partial = partial.data();
    c.x = x.data();
    c.y = y.data();
    c.weights = {w.data(), weights};
    c.gradient = {of_w.data(), weights};
    cuda::real_convolution_forward(cohort, c, stream);
    cuda::real_convolution_weights(cohort, c, gradient.data(), stream);
    cuda::real_convolution_input(cohort, c, gradient.data(), adds, of_x.data(), stream);
    const auto read = [&](const cuda::Array<float>& array, size_t step, size_t count) {
      std::vector<std::vector<float>> all(clients, std::vector<float>(count));
      for (size_t client = 0; client < clients; ++client)
        stream.copy_to_host(all[client].data(), array.data() + client * step, count * sizeof(float));
      stream.synchronise();
      return all;
    };
    return {read(y, outputs, of.images * c.out.floats()), read(of_w, weights, weights),
            read(of_x, inputs, of.images * c.in.floats())};
  }

  static double difference(const std::vector<float>& a, const std::vector<float>& b) {
    double square = 0;
    double norm = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      square += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
      norm += double{b[i]} * b[i];
    }
    return std::sqrt(square / norm);
  }
};

// Rounding both factors to eleven bits changes a product by 2^-12 at most, and a sum by less.
TEST_P(Tf32Test, IsNearTheExactConvolution) {
  if (cuda::device_count() == 0) GTEST_SKIP() << "no GPU";
  for (const bool adds : {false, true}) {
    const Results exact = results(GetParam(), 1, false, adds);
    const Results tf32 = results(GetParam(), 1, true, adds);
    EXPECT_LT(difference(tf32.of_y[0], exact.of_y[0]), 5e-4);
    EXPECT_LT(difference(tf32.of_weights[0], exact.of_weights[0]), 5e-4);
    EXPECT_LT(difference(tf32.of_x[0], exact.of_x[0]), 5e-4);
    EXPECT_GT(difference(tf32.of_y[0], exact.of_y[0]), 1e-5);  // not the exact one by mistake
  }
}

TEST_P(Tf32Test, GivesTheSameBitsForAnyNumberOfClients) {
  if (cuda::device_count() == 0) GTEST_SKIP() << "no GPU";
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  };
  const Results alone = results(GetParam(), 1, true, false);
  const Results three = results(GetParam(), 3, true, false);
  for (size_t client = 0; client < 3; ++client) {
    EXPECT_TRUE(same(three.of_y[client], alone.of_y[0]));
    EXPECT_TRUE(same(three.of_weights[client], alone.of_weights[0]));
    EXPECT_TRUE(same(three.of_x[client], alone.of_x[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Tf32Test,
                         testing::Values(Shape{"Plain", 8, 32, 64, {}}, Shape{"Wide", 5, 16, 144, {}},
                                         Shape{"Stride", 9, 48, 32, {.side = 3, .stride = 2, .padding = 1}},
                                         Shape{"One", 6, 32, 80, {.side = 1, .stride = 1, .padding = 0}},
                                         Shape{"OneOfTwo", 6, 64, 16, {.side = 1, .stride = 2, .padding = 0}},
                                         Shape{"Five", 7, 16, 16, {.side = 5, .stride = 1, .padding = 0}},
                                         Shape{"OneImage", 4, 16, 32, {}, 1}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace bitfed
