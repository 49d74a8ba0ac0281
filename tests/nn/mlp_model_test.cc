#include "bitfed/zoo/mlp_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/products/sign_bits.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dataset random_table(size_t rows, size_t columns, size_t classes) {
  RandomStream random({9, "table", rows, columns});
  Dataset table;
  table.name = "table";
  for (size_t c = 0; c < columns; ++c) table.columns.push_back("c" + std::to_string(c));
  for (size_t c = 0; c < classes; ++c) table.class_names.push_back(std::to_string(c));
  for (size_t i = 0; i < rows * columns; ++i)
    table.values.push_back(static_cast<float>(10 * random.normal()));
  table.labels.assign(rows, 0);
  return table;
}

MlpParameters random_parameters(const MlpShape& shape) {
  RandomStream random({9, "parameters"});
  MlpParameters parameters = initial_parameters(shape, random);
  for (float& shift : parameters.shifts) shift = static_cast<float>(random.normal());
  for (float& mean : parameters.means) mean = static_cast<float>(random.normal());
  for (float& variance : parameters.variances) variance = static_cast<float>(0.1 + 5 * random.uniform());
  return parameters;
}

ColumnScaling some_scaling(size_t columns) {
  ColumnScaling scaling;
  for (size_t c = 0; c < columns; ++c) {
    scaling.offset.push_back(static_cast<float>(c) - 3);
    scaling.factor.push_back(0.1f / static_cast<float>(c + 1));
  }
  return scaling;
}

const MlpShape kPaper{{14, 64, 32, 16, 6}, true};

// Layer by layer with the definition of batch norm, in double precision.
std::vector<double> plain_scores(const MlpShape& shape, const ColumnScaling& scaling,
                                 const MlpParameters& parameters, std::span<const float> row) {
  std::vector<double> x;
  for (size_t c = 0; c < row.size(); ++c) x.push_back((row[c] - scaling.offset[c]) * scaling.factor[c]);
  size_t weight = 0;
  size_t unit = 0;
  for (size_t layer = 0; layer < shape.layers(); ++layer) {
    const size_t out = shape.widths[layer + 1];
    std::vector<double> y(out);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t o = 0; o < out; ++o) {
        const double w = parameters.weights[weight++];
        y[o] += x[i] * (shape.binary ? (w >= 0 ? 1.0 : -1.0) : w);
      }
    }
    for (size_t o = 0; o < out; ++o, ++unit) {
      y[o] = (y[o] - parameters.means[unit]) / std::sqrt(parameters.variances[unit] + 1e-3) +
             parameters.shifts[unit];
      if (layer + 1 == shape.layers()) continue;
      y[o] = shape.binary ? (y[o] >= 0 ? 1.0 : -1.0) : std::max(y[o], 0.0);
    }
    x = y;
  }
  return x;
}

TEST(MlpModelTest, ScoresAreThoseOfThePlainDefinition) {
  ThreadPool pool(2);
  for (const MlpShape& shape : {kPaper, MlpShape{{5, 7, 3}, true}, MlpShape{{14, 64, 32, 16, 6}, false},
                                MlpShape{{2, 40, 3}, false}}) {
    const Dataset table = random_table(150, shape.widths.front(), shape.widths.back());
    const MlpParameters parameters = random_parameters(shape);
    const ColumnScaling scaling = some_scaling(shape.widths.front());
    const std::vector<float> scores = MlpModel(shape, scaling, parameters).scores(table, pool);
    const size_t classes = shape.widths.back();
    for (size_t i = 0; i < table.size(); ++i) {
      const std::vector<double> expected = plain_scores(shape, scaling, parameters, table.row(i));
      for (size_t c = 0; c < classes; ++c) ASSERT_NEAR(scores[i * classes + c], expected[c], 1e-4) << i;
    }
  }
}

TEST(MlpModelTest, SameScoresOnEveryInstructionSet) {
  ThreadPool pool(1);
  const std::string before = kernels().name;
  const Dataset table = random_table(100, 14, 6);
  const MlpModel model(kPaper, some_scaling(14), random_parameters(kPaper));
  std::vector<std::vector<float>> results;
  for (const Kernels* kernels : supported_kernels()) {
    force_kernels(kernels->name);
    results.push_back(model.scores(table, pool));
  }
  for (const auto& result : results) EXPECT_EQ(result, results.front());
  force_kernels(before);
}

TEST(MlpModelTest, BytesAreThoseOfThePaper) {
  const MlpParameters parameters = random_parameters(kPaper);
  const MlpModel binary(kPaper, some_scaling(14), parameters);
  EXPECT_EQ(binary.costs().bytes, 1388u);  // 3552 bits and 118 x 2 floats: 1.36 KiB
  EXPECT_EQ(binary.state().tensor_bytes(), 1388u);
  EXPECT_EQ(binary.costs().binary_ops, 64u * 32 + 32 * 16 + 16 * 6);
  EXPECT_EQ(binary.costs().flops, 14u * 64 + 2 * 118);
  const MlpModel full({kPaper.widths, false}, some_scaling(14), parameters);
  EXPECT_EQ(full.costs().bytes, 15152u);  // 14.80 KiB
  EXPECT_EQ(full.state().tensor_bytes(), 15152u);
}

TEST(MlpModelTest, CostsByLayer) {
  const MlpShape shape{{5, 7, 3}, true};
  const auto layers = MlpModel(shape, some_scaling(5), random_parameters(shape)).layer_costs();
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[0].name, "layers.0");
  EXPECT_EQ(layers[0].inputs, 5u);
  EXPECT_EQ(layers[0].outputs, 7u);
  EXPECT_EQ(layers[0].bits_per_weight, 1u);
  EXPECT_EQ(layers[0].weight_bytes, 5u);  // 35 bits
  EXPECT_EQ(layers[0].norm_bytes, 56u);
  EXPECT_EQ(layers[0].binary_ops, 0u);
  EXPECT_EQ(layers[0].flops, 35u + 14);
  EXPECT_EQ(layers[1].weight_bytes, 3u);  // 21 bits
  EXPECT_EQ(layers[1].binary_ops, 21u);
  EXPECT_EQ(layers[1].flops, 6u);
  const MlpShape real{{5, 7, 3}, false};
  const auto last = MlpModel(real, some_scaling(5), random_parameters(real)).layer_costs().back();
  EXPECT_EQ(last.bits_per_weight, 32u);
  EXPECT_EQ(last.weight_bytes, 84u);
  EXPECT_EQ(last.binary_ops, 0u);
  EXPECT_EQ(last.flops, 42u + 6);
}

TEST(MlpModelTest, ComesBackFromItsState) {
  ThreadPool pool(1);
  for (const bool binary : {true, false}) {
    const MlpShape shape{{14, 9, 5}, binary};  // 14 * 9 and 9 * 5 are no multiples of 8
    const MlpModel model(shape, some_scaling(14), random_parameters(shape));
    const State state = decode(encode(model.state()), "file");
    const auto again = mlp_model_from_state(state, "file");
    EXPECT_EQ(again->state(), model.state());
    const Dataset table = random_table(20, 14, 5);
    EXPECT_EQ(again->scores(table, pool), model.scores(table, pool));
  }
}

TEST(MlpModelTest, RefusesATableOfAnotherWidth) {
  ThreadPool pool(1);
  const MlpModel model(kPaper, some_scaling(14), random_parameters(kPaper));
  EXPECT_EQ(error_text([&] { model.scores(random_table(2, 13, 6), pool); }),
            "table: 13 columns of numbers, expected 14 as the model was trained on");
}

// What a damaged file may say.
TEST(MlpModelTest, RefusesWhatDoesNotFit) {
  const MlpShape shape{{3, 5, 2}, true};
  const State good = MlpModel(shape, some_scaling(3), random_parameters(shape)).state();
  const auto refused = [&](auto change) {
    State state = good;
    change(&state);
    return error_text([&] { mlp_model_from_state(state, "f"); });
  };
  const auto with = [&](const char* name, Tensor tensor) {
    State state;
    state.metadata = good.metadata;
    for (const Tensor& old : good.tensors()) state.add(old.name == name ? tensor : old);
    return error_text([&] { mlp_model_from_state(state, "f"); });
  };
  EXPECT_EQ(refused([](State*) {}), "");
  EXPECT_THAT(
      refused([](State* s) { s->metadata["bitfed.mlp"] = "{\"binary\":true,\"widths\":[3,5,70000]}"; }),
      HasSubstr("expected whole numbers from 1 to 65535"));
  EXPECT_THAT(refused([](State* s) { s->metadata["bitfed.mlp"] = "{\"binary\":1,\"widths\":[3,5,2]}"; }),
              HasSubstr("expected true or false"));
  EXPECT_THAT(refused([](State* s) { s->metadata["bitfed.mlp"] = "{\"binary\":true,\"widths\":[3]}"; }),
              HasSubstr("expected 2 to 64 numbers"));
  EXPECT_THAT(refused([](State* s) { s->metadata["bitfed.mlp"] = "{\"binary\":true,\"widths\":[3,6,2]}"; }),
              HasSubstr("layers.0.weights"));
  EXPECT_THAT(
      refused([](State* s) { s->metadata["bitfed.scaling"] = "{\"offset\":[0,0],\"factor\":[1,1,1]}"; }),
      HasSubstr("found 2 numbers, expected 3"));
  EXPECT_THAT(refused([](State* s) {
                s->metadata["bitfed.scaling"] = "{\"offset\":[0,0,0],\"factor\":[1,1,1],\"limit\":-1}";
              }),
              HasSubstr("field 'limit'"));
  EXPECT_THAT(
      refused([](State* s) { s->metadata["bitfed.scaling"] = "{\"offset\":[0,0,1e99],\"factor\":[1,1,1]}"; }),
      HasSubstr("expected finite numbers"));
  const uint8_t spare[] = {0xff, 0xff};
  EXPECT_THAT(with("layers.0.weights", {"layers.0.weights", Dtype::kU8, {2}, {spare, spare + 2}}),
              HasSubstr("bits are set past its 15 signs"));
  const uint8_t nan[] = {0, 0, 0xc0, 0x7f, 0, 0, 0, 0};
  EXPECT_THAT(with("layers.1.factor", {"layers.1.factor", Dtype::kF32, {2}, {nan, nan + 8}}),
              HasSubstr("tensor 'layers.1.factor': expected finite numbers"));
}

TEST(SignBitsTest, EightAByteFromTheLowest) {
  const std::vector<float> values = {1, -1, 0.0f, -0.0f, -3, 5, -1, -1, 2, -2};
  const std::vector<uint8_t> bytes = pack_signs(values);
  EXPECT_THAT(bytes, ElementsAre(0b00101101, 0b01));
  EXPECT_THAT(unpack_signs(bytes, 10, "t"), ElementsAre(1, -1, 1, 1, -1, 1, -1, -1, 1, -1));
}

}  // namespace
}  // namespace bitfed
