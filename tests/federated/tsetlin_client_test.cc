#include "bitfed/federated/methods/tsetlin_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kWidth = 3;  // six literals: two bits of an action's byte are not used
constexpr const char* kText = "[model]\nname = \"tm\"\nclauses = 4\nthreshold = 15\n[client]\nepochs = 3\n";

TsetlinRecipe recipe() {
  return read_tsetlin_recipe({Config::parse(kText, "recipe.toml"), hand_made::images(kWidth, 3), 0});
}

// The tensors of a good upload, to be spoilt one at a time.
struct Message {
  std::vector<uint16_t> classes = {0, 2};
  std::vector<uint32_t> samples = {5, 7};
  std::vector<uint64_t> actions_shape = {2, 4, 1};
  std::vector<uint8_t> actions = {1, 2, 4, 8, 16, 32, 63, 0};
  std::vector<uint64_t> weights_shape = {2, 4};
  std::vector<int32_t> weights = {1, 2, 3, 4, 5, 6, 7, 1 << 24};
  std::vector<uint64_t> calibration_shape = {2, 2};
  std::vector<float> calibration = {1.5, -2.5, 3.5, 0};

  State state() const {
    State state;
    state.add("classes", {classes.size()}, classes);
    state.add("samples", {samples.size()}, samples);
    state.add("0.actions", actions_shape, actions);
    state.add("0.weights", weights_shape, weights);
    state.add("0.calibration", calibration_shape, calibration);
    return state;
  }
};

TEST(TsetlinClientTest, ReadsAGoodUpload) {
  const TsetlinUpload upload = read_upload(decode(encode(Message().state()), "upload"), recipe());
  EXPECT_THAT(upload.classes, ElementsAre(0, 2));
  EXPECT_THAT(upload.samples, ElementsAre(5, 7));
  EXPECT_EQ(upload.total_samples(), 12u);
  ASSERT_EQ(upload.banks.size(), 1u);
  ASSERT_EQ(upload.banks[0].size(), 2u);
  const ClassBank& second = upload.banks[0][1];
  EXPECT_THAT(second.weights, ElementsAre(5, 6, 7, 1 << 24));
  EXPECT_EQ(second.positive_mean, 3.5f);
  EXPECT_EQ(second.negative_mean, 0.0f);
  EXPECT_TRUE(second.actions.get(0, 4));
  EXPECT_FALSE(second.actions.get(0, 5));
  EXPECT_TRUE(second.actions.get(1, 5));
  for (size_t literal = 0; literal < 6; ++literal) EXPECT_TRUE(second.actions.get(2, literal));
  EXPECT_EQ(second.actions.row(3)[0], 0u);
}

struct Spoiler {
  const char* name;
  std::function<void(Message&)> spoil;
  const char* expected;  // in the error's text
};

class BadUploadTest : public testing::TestWithParam<Spoiler> {};

TEST_P(BadUploadTest, IsRefused) {
  Message message;
  GetParam().spoil(message);
  const State state = decode(encode(message.state()), "upload");
  const std::string text = error_text([&] { read_upload(state, recipe()); });
  EXPECT_THAT(text, HasSubstr(GetParam().expected));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

const Spoiler kSpoilers[] = {
    {"ClassOutOfRange",
     [](Message& m) {
       m.classes = {0, 3};
     },
     "'classes'"},
    {"UnsortedClasses",
     [](Message& m) {
       m.classes = {2, 0};
     },
     "'classes'"},
    {"RepeatedClasses",
     [](Message& m) {
       m.classes = {2, 2};
     },
     "'classes'"},
    {"TooFewClasses", [](Message& m) { m.classes = {0}; }, "'samples'"},
    {"TooManyClasses",
     [](Message& m) {
       m.classes = {0, 1, 2};
     },
     "'samples'"},
    {"ClassesAndSamplesButNoBank",
     [](Message& m) {
       m.classes = {0, 1, 2};
       m.samples = {1, 1, 1};
     },
     "'0.actions'"},
    {"NoClasses",
     [](Message& m) {
       m.classes.clear();
       m.samples.clear();
     },
     "'classes'"},
    {"ZeroSamples",
     [](Message& m) {
       m.samples = {5, 0};
     },
     "'samples'"},
    {"ZeroWeight", [](Message& m) { m.weights[3] = 0; }, "'0.weights'"},
    {"NegativeWeight", [](Message& m) { m.weights[3] = -1; }, "'0.weights'"},
    {"HugeWeight", [](Message& m) { m.weights[3] = (1 << 24) + 1; }, "'0.weights'"},
    {"NotANumber", [](Message& m) { m.calibration[1] = std::numeric_limits<float>::quiet_NaN(); },
     "'0.calibration'"},
    {"Infinite", [](Message& m) { m.calibration[2] = -std::numeric_limits<float>::infinity(); },
     "'0.calibration'"},
    {"WeightsOfAnotherShape",
     [](Message& m) {
       m.weights_shape = {4, 2};
     },
     "'0.weights'"},
    {"ActionsOfAnotherShape",
     [](Message& m) {
       m.actions_shape = {2, 2, 2};
     },
     "'0.actions'"},
    {"CalibrationOfAnotherShape", [](Message& m) { m.calibration_shape = {4}; }, "'0.calibration'"},
    {"StrayBit", [](Message& m) { m.actions[5] = 64; }, "past its 6 literals"},
};

INSTANTIATE_TEST_SUITE_P(Spoilt, BadUploadTest, testing::ValuesIn(kSpoilers),
                         [](const auto& instance) { return instance.param.name; });

TEST(TsetlinClientTest, MissingTensorsAreRefused) {
  const State whole = Message().state();
  for (const Tensor& left_out : whole.tensors()) {
    State state;
    for (const Tensor& tensor : whole.tensors()) {
      if (tensor.name != left_out.name) state.add(tensor);
    }
    EXPECT_THAT(error_text([&] { read_upload(state, recipe()); }), HasSubstr("'" + left_out.name + "'"));
  }
}

TEST(TsetlinClientTest, AnotherTypeIsRefused) {
  const State whole = Message().state();
  for (const Tensor& changed : whole.tensors()) {
    State state;
    for (Tensor tensor : whole.tensors()) {
      if (tensor.name == changed.name) {
        tensor.bytes.resize(tensor.elements() * 8);
        tensor.dtype = Dtype::kF64;
      }
      state.add(std::move(tensor));
    }
    EXPECT_THAT(error_text([&] { read_upload(state, recipe()); }), HasSubstr("'" + changed.name + "'"));
  }
}

// However many bytes are missing at the end, the answer is an error, not a shorter upload.
TEST(TsetlinClientTest, TruncatedBytesAreRefused) {
  const Bytes whole = encode(Message().state());
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(error_text([&] { read_upload(decode(cut, "upload"), recipe()); }), "") << size;
  }
}

// Images whose class is their first two pixels, with some noise; class 1 is never seen.
Dataset samples(size_t count) {
  std::vector<std::vector<int>> bits;
  std::vector<uint16_t> labels;
  RandomStream random({11, "client-test"});
  for (size_t i = 0; i < count; ++i) {
    const uint16_t label = i % 3 == 0 ? 0 : 2;
    bits.push_back(
        {label == 2, random.below(4) == 0 ? label != 2 : label == 2, static_cast<int>(random.below(2))});
    labels.push_back(label);
  }
  Dataset dataset = hand_made::images(kWidth, 3, bits);
  dataset.labels = labels;
  return dataset;
}

State train(const Dataset& data, const ClientContext& context) {
  return make_tsetlin_client(recipe())->train(State(), data, context);
}

ClientContext context(uint32_t client) {
  return {RandomStream({1, "client", 1, client}), {}, {}, {}};
}

TEST(TsetlinClientTest, CalibrationIsTheMeanClassSum) {
  const Dataset data = samples(60);
  const TsetlinUpload upload = read_upload(train(data, context(0)), recipe());
  EXPECT_THAT(upload.classes, ElementsAre(0, 2));
  EXPECT_THAT(upload.samples, ElementsAre(20, 40));
  bool moved = false;
  for (size_t k = 0; k < 2; ++k) {
    const ClassBank& bank = upload.banks[0][k];
    double sums[2] = {0, 0};
    for (size_t i = 0; i < data.size(); ++i) {
      std::vector<int> image;
      for (const uint8_t pixel : data.image(i)) image.push_back(pixel > 75);
      for (size_t clause = 0; clause < bank.weights.size(); ++clause) {
        std::vector<size_t> literals;
        for (size_t literal = 0; literal < 6; ++literal) {
          if (bank.actions.get(clause, literal)) literals.push_back(literal);
        }
        if (!hand_made::fires(literals, image)) continue;
        sums[data.labels[i] == upload.classes[k] ? 0 : 1] +=
            (clause % 2 == 0 ? 1 : -1) * bank.weights[clause];
      }
    }
    const double own = upload.samples[k];
    EXPECT_FLOAT_EQ(bank.positive_mean, static_cast<float>(sums[0] / own));
    EXPECT_FLOAT_EQ(bank.negative_mean, static_cast<float>(sums[1] / (60 - own)));
    moved |= bank.positive_mean > bank.negative_mean;
  }
  EXPECT_TRUE(moved);  // it did learn something to calibrate
}

TEST(TsetlinClientTest, WithoutNegativesTheirMeanIsZero) {
  Dataset data = samples(30);
  std::fill(data.labels.begin(), data.labels.end(), uint16_t{1});
  const TsetlinUpload upload = read_upload(train(data, context(0)), recipe());
  EXPECT_THAT(upload.classes, ElementsAre(1));
  EXPECT_EQ(upload.banks[0][0].negative_mean, 0);
}

TEST(TsetlinClientTest, AFunctionOfDataAndStreamAlone) {
  const Dataset data = samples(60);
  EXPECT_EQ(train(data, context(0)), train(data, context(0)));
  EXPECT_NE(train(data, context(0)), train(data, context(1)));
}

TEST(TsetlinClientTest, CountsWhatItTrainedOnAndItsProgress) {
  uint64_t trained = 0;
  std::vector<double> progress;
  ClientContext told = context(0);
  told.trained = [&](uint64_t more) { trained += more; };
  told.progress = [&](double fraction) { progress.push_back(fraction); };
  train(samples(60), told);
  EXPECT_EQ(trained, 180u);
  EXPECT_THAT(progress,
              ElementsAre(testing::DoubleEq(1.0 / 3), testing::DoubleEq(2.0 / 3), testing::DoubleEq(1)));
}

TEST(TsetlinClientTest, StopsWhenAsked) {
  ClientContext told = context(0);
  told.stop = [] { return true; };
  EXPECT_EQ(error_text([&] { train(samples(60), told); }, Error::Kind::kStopped), "stopped");
}

// A machine that goes on from a broadcast is another one than a machine from scratch.
TEST(TsetlinClientTest, GoesOnFromTheBroadcast) {
  const Dataset data = samples(60);
  State broadcast;
  pack_actions(BitMatrix(12, 6), "0.actions", {3, 4}, &broadcast);
  broadcast.add("0.weights", {3, 4}, std::vector<int32_t>(12, 1000));
  const auto client = make_tsetlin_client(recipe());
  const TsetlinUpload upload = read_upload(client->train(broadcast, data, context(0)), recipe());
  for (const int32_t weight : upload.banks[0][0].weights) EXPECT_NEAR(weight, 1000, 3 * 60);
  State other;
  pack_actions(BitMatrix(12, 6), "0.actions", {3, 4}, &other);
  EXPECT_THAT(error_text([&] { client->train(other, data, context(0)); }), HasSubstr("'0.weights'"));
}

}  // namespace
}  // namespace bitfed
