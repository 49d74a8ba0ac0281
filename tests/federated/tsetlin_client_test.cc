#include "bitfed/federated/tsetlin/tsetlin_client.h"

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
  TsetlinRecipe recipe =
      read_tsetlin_recipe({Config::parse(kText, "recipe.toml"), hand_made::images(kWidth, 3), 0});
  recipe.sends_familiar = true;
  return recipe;
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
  std::vector<uint64_t> calibration_shape = {2, 3};
  std::vector<float> calibration = {1.5, -2.5, -1.5, 3.5, 0, 1};
  std::function<void(Bytes&)> damage = [](Bytes&) {};  // to the coded clauses
  std::vector<uint64_t> familiar = {5};
  std::vector<int32_t> familiar_weights = {30};
  float familiar_mean = 12.5;

  State state() const {
    State state;
    state.add("classes", {classes.size()}, classes);
    state.add("samples", {samples.size()}, samples);
    Bytes coded = encode_clauses(hand_made::flat_layout(2 * kWidth), {actions_of(clauses), weights});
    damage(coded);
    state.add("0.clauses", {coded.size()}, coded);
    state.add("0.calibration", calibration_shape, calibration);
    add_clauses(hand_made::flat_layout(2 * kWidth), {actions_of(familiar), familiar_weights}, "0.familiar",
                &state);
    state.add("0.familiar_mean", {1}, std::vector<float>{familiar_mean});
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
  EXPECT_EQ(second.hardest_mean, 1.0f);
  EXPECT_TRUE(second.actions.get(0, 4));
  EXPECT_FALSE(second.actions.get(0, 5));
  EXPECT_TRUE(second.actions.get(1, 5));
  for (size_t literal = 0; literal < 6; ++literal) EXPECT_TRUE(second.actions.get(2, literal));
  EXPECT_EQ(second.actions.row(3)[0], 0u);
  ASSERT_EQ(upload.familiar.size(), 1u);
  EXPECT_THAT(upload.familiar[0].clauses.weights, ElementsAre(30));
  EXPECT_EQ(upload.familiar[0].clauses.actions.row(0)[0], 5u);
  EXPECT_EQ(upload.familiar[0].mean, 12.5f);
}

TEST(TsetlinClientTest, EmptyFamiliarClausesSayNothing) {
  Message message;
  message.familiar = {0};
  EXPECT_TRUE(read_upload(message.state(), recipe()).familiar[0].clauses.weights.empty());
}

// A server that trusts less: weights and samples have a bound, and nobody tells classes apart by less than T.
TEST(TsetlinClientTest, ClippedVotes) {
  const Config config =
      Config::parse(std::string(kText) + "[federation]\nmost_votes = 4\nmost_samples = 6\n", "recipe.toml");
  TsetlinRecipe careful = read_tsetlin_recipe({config, hand_made::images(kWidth, 3), 0});
  const Config renamed =
      Config::parse(std::string(kText) + "[federation]\nmax_votes = 4\nmax_samples = 6\n", "recipe.toml");
  EXPECT_EQ(read_tsetlin_recipe({renamed, hand_made::images(kWidth, 3), 0}).max_votes, careful.max_votes);
  EXPECT_EQ(read_tsetlin_recipe({renamed, hand_made::images(kWidth, 3), 0}).max_samples, careful.max_samples);
  careful.sends_familiar = true;
  const auto threshold = static_cast<float>(careful.specialists[0].options.threshold);
  Message message;
  message.calibration = {1.5, -2.5, 0, 0.5, 1, 2};
  const TsetlinUpload upload = read_upload(message.state(), careful);
  EXPECT_THAT(upload.samples, ElementsAre(5, 6));
  EXPECT_THAT(upload.banks[0][0].weights, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(upload.banks[0][1].weights, ElementsAre(4, 4, 4, 4));
  EXPECT_EQ(upload.banks[0][0].positive_mean, threshold - 2.5f);
  EXPECT_EQ(upload.banks[0][0].negative_mean, -2.5f);
  EXPECT_EQ(upload.banks[0][1].positive_mean, 0.5f);  // it never told them apart, and still does not
  EXPECT_EQ(upload.banks[0][1].negative_mean, threshold);
  EXPECT_THAT(upload.familiar[0].clauses.weights, ElementsAre(4));
  message.calibration = {2 * threshold, -threshold, 0, 5 * threshold, 0, 0};
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
    {"CalibrationOfAnotherShape", [](Message& m) { m.calibration_shape = {6}; }, "'0.calibration'"},
    {"FamiliarClausesTooMany",
     [](Message& m) {
       m.familiar = {1, 2};
       m.familiar_weights = {1, 1};
     },
     "'0.familiar'"},
    {"HugeFamiliarWeight", [](Message& m) { m.familiar_weights = {(1 << 24) + 1}; },
     "'0.familiar': found weight 16777217 of clause 0, expected at most 16777216"},
    {"FamiliarMeanBelowZero", [](Message& m) { m.familiar_mean = -1; }, "'0.familiar_mean'"},
    {"FamiliarMeanNotANumber", [](Message& m) { m.familiar_mean = std::numeric_limits<float>::quiet_NaN(); },
     "'0.familiar_mean'"},
    {"FamiliarMeanMoreThanAnySum", [](Message& m) { m.familiar_mean = 3e38f; }, "'0.familiar_mean'"},
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

bool fires_for(uint64_t clause, std::span<const uint8_t> pixels) {
  std::vector<size_t> literals;
  for (size_t literal = 0; literal < 2 * kWidth; ++literal) {
    if (clause >> literal & 1) literals.push_back(literal);
  }
  std::vector<int> image;
  for (const uint8_t pixel : pixels) image.push_back(pixel > 75);
  return hand_made::fires(literals, image);
}

// Two of three classes are seen, or all of them: class 1 in every seventh sample.
TEST(TsetlinClientTest, CalibrationIsTheMeanClassSum) {
  bool moved = false;
  bool harder = false;
  for (const bool all : {false, true}) {
    Dataset data = samples(60);
    for (size_t i = 0; all && i < data.size(); i += 7) data.labels[i] = 1;
    const TsetlinUpload upload = read_upload(train(data, context(0)), recipe());
    ASSERT_EQ(upload.classes.size(), all ? 3u : 2u);
    for (size_t k = 0; k < upload.classes.size(); ++k) {
      const ClassBank& bank = upload.banks[0][k];
      std::vector<double> sums(3);
      std::vector<double> counts(3);
      for (size_t i = 0; i < data.size(); ++i) {
        ++counts[data.labels[i]];
        for (size_t clause = 0; clause < bank.weights.size(); ++clause) {
          if (fires_for(bank.actions.row(clause)[0], data.image(i)))
            sums[data.labels[i]] += (clause % 2 == 0 ? 1 : -1) * bank.weights[clause];
        }
      }
      const size_t own = upload.classes[k];
      EXPECT_EQ(upload.samples[k], counts[own]);
      EXPECT_FLOAT_EQ(bank.positive_mean, static_cast<float>(sums[own] / counts[own]));
      const double negative = (sums[0] + sums[1] + sums[2] - sums[own]) / (60 - counts[own]);
      EXPECT_FLOAT_EQ(bank.negative_mean, static_cast<float>(negative));
      double hardest = negative;
      for (size_t other = 0; other < 3; ++other) {
        if (other == own || counts[other] == 0) continue;
        const double trust = counts[other] / (counts[other] + 100);
        hardest = std::max(hardest, negative + trust * (sums[other] / counts[other] - negative));
      }
      EXPECT_FLOAT_EQ(bank.hardest_mean, static_cast<float>(hardest));
      moved |= bank.positive_mean > bank.negative_mean;
      harder |= bank.hardest_mean > bank.negative_mean;
    }
  }
  EXPECT_TRUE(moved);  // it did learn something to calibrate
  EXPECT_TRUE(harder);
}

// The clauses against the first class that was not seen, as a machine that is trained here has them.
TEST(TsetlinClientTest, FamiliarClausesAreThoseAgainstAnUnseenClass) {
  const Dataset data = samples(60);
  TsetlinRecipe larger = recipe();
  larger.specialists[0].options.clauses = 12;
  const TsetlinUpload upload =
      read_upload(make_tsetlin_client(larger)->train(State(), data, context(0)), larger);
  const SpecialistSpec& spec = larger.specialists[0];
  TsetlinMachine machine(spec.options, spec.shape(data), 3);
  const BitImages images = booleanize(spec.booleanizer, data);
  for (uint32_t epoch = 0; epoch < 3; ++epoch)
    machine.train_epoch(images, data.labels, context(0).random.substream(0).substream(epoch));
  BitMatrix actions = machine.actions();
  reduce_clauses(hand_made::flat_layout(2 * kWidth), &actions);
  std::vector<std::pair<int32_t, uint64_t>> against;  // of class 1: weight, literals
  for (size_t row = 12 + 1; row < 24; row += 2) {
    if (actions.row(row)[0] != 0) against.push_back({machine.weights()[row], actions.row(row)[0]});
  }
  std::stable_sort(against.begin(), against.end(), [](auto& a, auto& b) { return a.first > b.first; });
  against.resize(std::min<size_t>(against.size(), 3));
  const FamiliarClauses& familiar = upload.familiar[0];
  ASSERT_EQ(familiar.clauses.weights.size(), against.size());
  ASSERT_FALSE(against.empty());
  double sum = 0;
  for (size_t i = 0; i < against.size(); ++i) {
    EXPECT_EQ(familiar.clauses.weights[i], against[i].first);
    EXPECT_EQ(familiar.clauses.actions.row(i)[0], against[i].second);
    for (size_t sample = 0; sample < data.size(); ++sample) {
      if (fires_for(against[i].second, data.image(sample))) sum += against[i].first;
    }
  }
  EXPECT_GT(sum, 0);
  EXPECT_FLOAT_EQ(familiar.mean, static_cast<float>(sum / 60));
}

TEST(TsetlinClientTest, WhoHasSeenAllClassesIsAskedForNoFamiliarClauses) {
  Dataset data = samples(60);
  for (size_t i = 0; i < data.size(); i += 7) data.labels[i] = 1;
  const State upload = train(data, context(0));
  EXPECT_FALSE(upload.has("0.familiar"));
  EXPECT_TRUE(read_upload(upload, recipe()).familiar[0].clauses.weights.empty());
  TsetlinRecipe without = recipe();
  without.sends_familiar = false;
  EXPECT_FALSE(make_tsetlin_client(without)->train(State(), samples(60), context(0)).has("0.familiar"));
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
