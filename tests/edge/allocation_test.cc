// What models behind the C interface take: predictions allocate nothing after the first.

#include <gtest/gtest.h>

#include <thread>

#include "include/bitfed.h"
#include "tests/base/counted_allocations.h"
#include "tests/edge/some_models.h"

namespace bitfed {
namespace {

int predict_some(const bitfed_model* model, const Dataset& samples, size_t count, uint16_t* classes,
                 float* scores) {
  return samples.is_table() ? bitfed_predict_numbers(model, samples.values.data(), count, classes, scores)
                            : bitfed_predict_pixels(model, samples.pixels.data(), count, classes, scores);
}

bitfed_model* opened(const SomeModel& some) {
  const Bytes bytes = encode(some.model->state());
  return bitfed_open_bytes(bytes.data(), bytes.size());
}

TEST(AllocationTest, APredictionAllocatesNothing) {
  for (const SomeModel& some : all_some_models()) {
    bitfed_model* model = opened(some);
    ASSERT_NE(model, nullptr) << some.name << ": " << bitfed_error();
    const size_t most = some.samples.size();
    std::vector<uint16_t> classes(most);
    std::vector<float> scores(most * bitfed_class_count(model));
    ASSERT_EQ(predict_some(model, some.samples, 1, classes.data(), scores.data()), 0);
    for (const size_t count : {size_t{1}, most, size_t{3}}) {
      const size_t before = allocations;
      predict_some(model, some.samples, count, classes.data(), nullptr);
      predict_some(model, some.samples, count, nullptr, scores.data());
      predict_some(model, some.samples, count, classes.data(), scores.data());
      EXPECT_EQ(allocations - before, 0u) << some.name << ", " << count << " samples";
    }
    bitfed_close(model);
  }
}

// Weights of 4.9 million signs, 0.6 MB, and what belongs to them; real ones would take 19.6 MB. Beside these
// what it works in: the values of a block behind its first convolution and its second, the image, two rows of
// the stem, two images of signs.
TEST(AllocationTest, AResnet10TakesLessThanAMegabyte) {
  const SomeModel some = some_network_model("binary resnet10", true, 64, 32, 32, 3, 1);
  const Bytes bytes = encode(some.model->state());
  bitfed_close(bitfed_open_bytes(bytes.data(), bytes.size()));  // what the library keeps once and for all
  const size_t before = bytes_in_use;
  bitfed_model* model = bitfed_open_bytes(bytes.data(), bytes.size());
  ASSERT_NE(model, nullptr) << bitfed_error();
  const size_t floats = 2 * 32 * 32 * 64 + 34 * 34 * 3 + 2 * 32 * 64;
  const size_t sign_words = 2 * 34 * 34 * 2;
  EXPECT_LT(bytes_in_use - before, 1000000 + 4 * (floats + sign_words));
  bitfed_close(model);
  EXPECT_EQ(bytes_in_use, before);
}

// Its 20 KB of weights do not depend on the images' size, which the file claims.
TEST(AllocationTest, ASmallFileOfLargeImagesTakesLittle) {
  const SomeModel some = some_network_model("real resnet10", false, 1, 256, 256, 1, 1);
  const Bytes bytes = encode(some.model->state());
  EXPECT_LT(bytes.size(), 50000u);
  const size_t before = bytes_in_use;
  bitfed_model* model = bitfed_open_bytes(bytes.data(), bytes.size());
  ASSERT_NE(model, nullptr) << bitfed_error();
  EXPECT_LT(bytes_in_use - before, 500000000u);
  bitfed_close(model);
}

// Of threads that predict at once, each comes to the answers of one alone.
TEST(AllocationTest, ThreadsGetPredictorsOfTheirOwn) {
  for (const SomeModel& some : all_some_models()) {
    bitfed_model* model = opened(some);
    ASSERT_NE(model, nullptr) << some.name << ": " << bitfed_error();
    const size_t count = some.samples.size();
    const size_t numbers = count * bitfed_class_count(model);
    std::vector<float> alone(numbers);
    ASSERT_EQ(predict_some(model, some.samples, count, nullptr, alone.data()), 0);
    std::vector<std::vector<float>> together(4, std::vector<float>(numbers));
    std::vector<std::thread> threads;
    for (std::vector<float>& scores : together) {
      threads.emplace_back([&] {
        for (int time = 0; time < 5; ++time) predict_some(model, some.samples, count, nullptr, scores.data());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<float>& scores : together) EXPECT_EQ(scores, alone) << some.name;
    bitfed_close(model);
  }
}

}  // namespace
}  // namespace bitfed
