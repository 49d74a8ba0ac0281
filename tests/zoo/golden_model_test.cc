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
Dataset formula_images(size_t height, size_t width) {
  Dataset data;
  data.name = "formula";
  data.height = height;
  data.width = width;
  data.channels = 1;
  for (size_t i = 0; i < 6; ++i) {
    for (size_t y = 0; y < height; ++y) {
      for (size_t x = 0; x < width; ++x) {
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

  const Dataset data = formula_images(8, 9);
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

void expect_golden(const std::string& name, const std::string& sha256, uint64_t bytes, const Dataset& data,
                   const std::vector<float>& expected) {
  const auto path = std::filesystem::path(BITFED_TESTS_DIR) / "golden" / name;
  const State state = read_state(path);
  EXPECT_EQ(state.sha256(), sha256);
  const auto model = load_model(state, path.string());
  EXPECT_EQ(model->state().sha256(), sha256);
  EXPECT_EQ(model->costs().bytes, bytes);
  ThreadPool pool(1);
  EXPECT_EQ(model->scores(data, pool), expected);
}

TEST(GoldenModel, PerceptronOfFormatOne) {
  Dataset table;
  table.name = "formula";
  table.columns.assign(5, "x");
  table.labels.assign(6, 0);
  for (size_t i = 0; i < 30; ++i) table.values.push_back(static_cast<float>(i * i * 7 % 23) * 0.25f - 2.5f);
  expect_golden("mlp-1.safetensors", "05b3eb31b3a2beeab9a438506aa690ae55ab0618aa130f7f2f7e6984a24944da", 385,
                table,
                {0.447937787f, 4.28453112f, 0.974912167f, 2.30525422f, 4.28453112f, 0.974912167f, 2.30525422f,
                 4.28453112f, 0.974912167f, 2.30525422f, 4.28453112f, 0.974912167f, 1.37659597f, 5.82755852f,
                 -0.610179067f, 2.30525422f, 4.28453112f, 0.974912167f});
}

TEST(GoldenModel, BinaryNetworkOfFormatOne) {
  expect_golden("network-1.safetensors", "ba628068b47dcfc3f87d5870fd861ca0f405ddd37c7abd80cb05bfce561b461a",
                15570, formula_images(17, 16),
                {0.00439927634f, -0.301769733f, 0.896306276f, -0.107780114f, 0.185801148f, 0.388210714f,
                 -0.162847012f, 0.327844411f, 0.590440094f, -0.140234813f, 0.111791745f, 0.177150756f,
                 -0.161069855f, -0.483327448f, 0.446938246f, 0.0329869613f, 0.0221554954f, 0.723761559f});
}

TEST(GoldenModel, StaticResnetOfFormatOne) {
  expect_golden(
      "resnet-static-1.safetensors", "ccb29fe0d3f8466f02053e8b411cc44b5d9f0d4af84adb59213ffa3c6f4159c1",
      50728, formula_images(7, 5),
      {0.737180829f,   -2.89519382f,  0.243982926f,  -0.1762366f,  -1.0948385f,  -2.19585228f,  -1.12594306f,
       -0.0699730963f, -1.67855763f,  -1.7314198f,   3.63113642f,  -3.17495966f, -2.23565173f,  -1.20214117f,
       1.23219383f,    -0.156578809f, 0.210626766f,  0.165169567f, -2.42715144f, -0.892294586f, 0.910561919f,
       -2.59935617f,   -0.114737332f, -0.834889174f, 0.672912061f, -1.04122055f, -0.265210748f, 0.972759128f,
       -2.20615578f,   -2.17268991f,  1.88321185f,   -2.76404095f, 1.13987541f,  -0.283025861f, -0.682846069f,
       0.57384181f,    -0.482798964f, 0.0281345882f, -1.64549387f, -1.32009697f, 1.96523094f,   -1.95417631f,
       -0.308773309f,  -1.176543f,    -0.857927263f, -1.8271023f,  -1.81069744f, 0.483554661f,  -1.0774653f,
       -0.707906127f,  2.49015427f,   -0.735021353f, 0.742467463f, -3.08045936f, -0.129028857f, -1.71622097f,
       -1.79255092f,   0.260631979f,  0.57245481f,   -2.46246314f});
}

}  // namespace
}  // namespace bitfed
