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

constexpr size_t kWidth = 3;
constexpr const char* kText = "[model]\nname = \"tm\"\nclauses = 4\nthreshold = 15\n[client]\nepochs = 3\n";

TsetlinRecipe recipe() {
  return read_tsetlin_recipe({Config::parse(kText, "recipe.toml"), hand_made::images(kWidth, 3), 0});
}

BitMatrix actions_of(const std::vector<uint64_t>& clauses) {
  BitMatrix actions(clauses.size(), 2 * kWidth);
  for (size_t row = 0; row < clauses.size(); ++row) actions.row(row)[0] = clauses[row];
  return actions;
}

// The tensors of a good upload, to be spoilt one at a time.
struct Message {
  std::vector<uint16_t> classes = {0, 2};
  std::vector<uint32_t> samples = {5, 7};
  std::vector<uint64_t> clauses = {1, 2, 4, 8, 16, 32, 63, 0};
  std::vector<int32_t> weights = {1, 2, 3, 4, 5, 6, 7, 1 << 24};
  std::vector<uint64_t> calibration_shape = {2, 2};
  std::vector<float> calibration = {1.5, -2.5, 3.5, 0};
  std::function<void(Bytes&)> damage = [](Bytes&) {};  // to the coded clauses

  State state() const {
    State state;
    state.add("classes", {classes.size()}, classes);
    state.add("samples", {samples.size()}, samples);
    Bytes coded = encode_clauses(hand_made::flat_layout(2 * kWidth), {actions_of(clauses), weights});
    damage(coded);
    state.add("0.clauses", {coded.size()}, coded);
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

// A server that trusts less: weights and samples have a bound, and nobody tells classes apart by less than T.
TEST(TsetlinClientTest, ClippedVotes) {
  const Config config =
      Config::parse(std::string(kText) + "[federation]\nmost_votes = 4\nmost_samples = 6\n", "recipe.toml");
  const TsetlinRecipe careful = read_tsetlin_recipe({config, hand_made::images(kWidth, 3), 0});
  const auto threshold = static_cast<float>(careful.specialists[0].options.threshold);
  Message message;
  message.calibration = {1.5, -2.5, 0.5, 1};
  const TsetlinUpload upload = read_upload(message.state(), careful);
  EXPECT_THAT(upload.samples, ElementsAre(5, 6));
  EXPECT_THAT(upload.banks[0][0].weights, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(upload.banks[0][1].weights, ElementsAre(4, 4, 4, 4));
  EXPECT_EQ(upload.banks[0][0].positive_mean, threshold - 2.5f);
  EXPECT_EQ(upload.banks[0][0].negative_mean, -2.5f);
  EXPECT_EQ(upload.banks[0][1].positive_mean, 0.5f);  // it never told them apart, and still does not
  EXPECT_EQ(upload.banks[0][1].negative_mean, threshold);
  message.calibration = {2 * threshold, -threshold, 5 * threshold, 0};
  EXPECT_EQ(read_upload(message.state(), careful).banks[0][0].positive_mean, 2 * threshold);
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
     "'0.clauses'"},
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
    {"HugeWeight", [](Message& m) { m.weights[3] = (1 << 24) + 1; },
     "'0.clauses': found weight 16777217 of clause 3, expected at most 16777216"},
    {"LargestWeight", [](Message& m) { m.weights[3] = INT32_MAX; }, "'0.clauses': found weight 2147483647"},
    {"ClausesOfOneClassTooFew",
     [](Message& m) {
       m.clauses.resize(4);
       m.weights.resize(4);
     },
     "'0.clauses'"},
    {"ClausesOfOneClassTooMany",
     [](Message& m) {
       m.clauses.resize(12);
       m.weights.resize(12, 1);
     },
     "expected 8 clauses of 6 literals"},
    {"NoBytes", [](Message& m) { m.damage = [](Bytes& bytes) { bytes.clear(); }; },
     "'0.clauses': found 0 bytes, expected 8 clauses"},
    {"ByteMissing", [](Message& m) { m.damage = [](Bytes& bytes) { bytes.pop_back(); }; }, "checksum"},
    {"TrailingByte", [](Message& m) { m.damage = [](Bytes& bytes) { bytes.push_back(0); }; }, "checksum"},
    {"FlippedBit", [](Message& m) { m.damage = [](Bytes& bytes) { bytes[2] ^= 4; }; }, "checksum"},
    {"NotANumber", [](Message& m) { m.calibration[1] = std::numeric_limits<float>::quiet_NaN(); },
     "'0.calibration'"},
    {"Infinite", [](Message& m) { m.calibration[2] = -std::numeric_limits<float>::infinity(); },
     "'0.calibration'"},
    {"MoreThanAnySum", [](Message& m) { m.calibration[0] = 3e38f; }, "'0.calibration'"},
    {"CalibrationOfAnotherShape", [](Message& m) { m.calibration_shape = {4}; }, "'0.calibration'"},
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
  const ClauseLayout layout = hand_made::flat_layout(2 * kWidth);
  State broadcast;
  add_clauses(layout, {BitMatrix(12, 6), std::vector<int32_t>(12, 1000)}, "0.clauses", &broadcast);
  const auto client = make_tsetlin_client(recipe());
  const TsetlinUpload upload = read_upload(client->train(broadcast, data, context(0)), recipe());
  for (const int32_t weight : upload.banks[0][0].weights) EXPECT_NEAR(weight, 1000, 3 * 60);
  State other;
  add_clauses(layout, {BitMatrix(8, 6), std::vector<int32_t>(8, 1000)}, "0.clauses", &other);
  EXPECT_THAT(error_text([&] { client->train(other, data, context(0)); }), HasSubstr("'0.clauses'"));
}

// A bank's clauses come reduced, so that none has a literal and its negation but the one that never fires.
TEST(TsetlinClientTest, UploadsAreReduced) {
  const TsetlinUpload upload = read_upload(train(samples(60), context(0)), recipe());
  for (const ClassBank& bank : upload.banks[0]) {
    BitMatrix reduced = bank.actions;
    reduce_clauses(hand_made::flat_layout(2 * kWidth), &reduced);
    EXPECT_EQ(bank.actions, reduced);
  }
}

// A message may claim what it likes: what is allocated depends on the recipe and on the bytes that came.
TEST(TsetlinClientTest, AClaimedBillionIsRefused) {
  const Bytes good = encode(Message().state());
  const std::string text(good.begin(), good.end());
  const size_t at = text.find("\"shape\"", text.find("0.clauses"));
  const size_t begin = text.find('[', at) + 1;
  std::string claim = text;
  claim.replace(begin, text.find(']', begin) - begin, "1000000000");
  claim[0] = static_cast<char>(static_cast<uint8_t>(claim[0]) + claim.size() - text.size());
  const std::string error = error_text([&] {
    read_upload(decode({reinterpret_cast<const uint8_t*>(claim.data()), claim.size()}, "upload"), recipe());
  });
  EXPECT_THAT(error, HasSubstr("0.clauses"));
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

// The FedTMOS paper's own figures: 0.04, 0.048 and 0.568 MB.
TEST(TsetlinClientTest, RawUploadAsThePaperCountsIt) {
  Dataset mnist = hand_made::images(28, 10);
  mnist.height = 28;
  const auto bytes = [](const std::string& text, const Dataset& prototype) {
    return raw_upload_bytes(read_tsetlin_recipe({Config::parse(text, "recipe.toml"), prototype, 0}));
  };
  EXPECT_EQ(bytes("[model]\nname = \"ctm\"\nclauses = 100\npatch = [10, 10]\n", mnist), 40'000u);
  EXPECT_EQ(bytes("[model]\nname = \"ctm\"\nclauses = 200\npatch = [5, 5]\n", mnist), 48'000u);
  Dataset cifar = hand_made::images(32, 10);
  cifar.height = 32;
  cifar.channels = 3;
  const std::string colour = "booleanize = { kind = \"colour-thermometer\", levels = 8 }\nclauses = 200\n";
  EXPECT_EQ(bytes("[model]\nname = \"ctm-composite\"\n[[model.member]]\nclauses = 200\npatch = [10, 10]\n"
                  "[[model.member]]\n" +
                      colour + "patch = [3, 3]\n[[model.member]]\n" + colour + "patch = [4, 4]\n",
                  cifar),
            568'000u);
}

}  // namespace
}  // namespace bitfed
