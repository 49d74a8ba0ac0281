// Model files of every format version keep loading, and predict as they did.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/zoo.h"
#include "tests/tsetlin/naive_scores.h"

namespace bitfed {
namespace {

using testing::ElementsAre;

// Images by a formula, so that they depend on nothing of the library.
Dataset formula_images() {
  Dataset data;
  data.name = "formula";
  data.height = 8;
  data.width = 9;
  data.channels = 1;
  for (size_t i = 0; i < 6; ++i) {
    for (size_t y = 0; y < 8; ++y) {
      for (size_t x = 0; x < 9; ++x) {
        data.pixels.push_back(static_cast<uint8_t>((i * 37 + y * y * 29 + x * 53 + x * y * i * 11) % 256));
      }
    }
  }
  data.labels.assign(6, 0);
  data.class_names = {"a", "b", "c", "d"};
  return data;
}

TEST(GoldenModel, TsetlinOfFormatOne) {
  const auto path = std::filesystem::path(BITFED_TESTS_DIR) / "golden" / "tsetlin-1.safetensors";
  const State state = read_state(path);
  EXPECT_EQ(state.sha256(), "35d303cbcb52c0fc05e4b0315d23218a09e033ef60ce675ae401e60cd4103745");
  const auto model = load_model(state, path.string());
  ASSERT_EQ(model->class_count(), 4u);
  EXPECT_EQ(model->state().sha256(), state.sha256());
  EXPECT_EQ(model->costs().bytes, 1920u);

  const auto* tsetlin = dynamic_cast<const TsetlinModel*>(model.get());
  ASSERT_NE(tsetlin, nullptr);
  ASSERT_EQ(tsetlin->members().size(), 2u);
  const TsetlinMember& first = tsetlin->members()[0];
  EXPECT_EQ(first.booleanizer.kind, "threshold");
  EXPECT_EQ(first.booleanizer.level, 120);
  EXPECT_EQ(first.shape, (PatchShape{8, 9, 1, 3, 4}));
  EXPECT_EQ(first.clauses, 16u);
  EXPECT_THAT(first.bias, ElementsAre(5, -2, 0, 7));
  EXPECT_EQ(first.clamp, 12);
  EXPECT_EQ(first.scale, 7.5f);
  const TsetlinMember& second = tsetlin->members()[1];
  EXPECT_EQ(second.booleanizer.kind, "adaptive-gaussian");
  EXPECT_EQ(second.booleanizer.window, 5);
  EXPECT_EQ(second.booleanizer.offset, -1);
  EXPECT_TRUE(second.shape.is_flat());
  EXPECT_EQ(second.clauses, 14u);
  EXPECT_THAT(second.bias, ElementsAre(3, -4, 0, 1));
  EXPECT_EQ(second.clamp, 0);
  EXPECT_EQ(second.scale, 3.0f);

  const Dataset data = formula_images();
  ThreadPool pool(1);
  EXPECT_THAT(predict(*model, data, pool), ElementsAre(2, 1, 0, 3, 2, 1));
  const std::vector<float> expected = {2.5999999f,  -0.600000024f, 4.5999999f,   2.9333334f,  1.26666665f,
                                       4.73333311f, 1.26666665f,   1.9333334f,   8.46666622f, -0.600000024f,
                                       1.60000002f, 7.26666641f,   4.0666666f,   3.73333335f, 1.60000002f,
                                       4.26666689f, 1.39999998f,   0.866666675f, 6.9333334f,  1.26666665f,
                                       2.5999999f,  5.73333311f,   3.26666665f,  2.9333334f};
  EXPECT_EQ(model->scores(data, pool), expected);
  EXPECT_EQ(naive_scores(*tsetlin, data), expected);
}

}  // namespace
}  // namespace bitfed
