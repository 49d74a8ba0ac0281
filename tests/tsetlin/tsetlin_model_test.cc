#include "bitfed/tsetlin/tsetlin_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/base/error_text.h"
#include "tests/tsetlin/naive_scores.h"

namespace bitfed {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

RandomStream stream(uint64_t number) {
  return RandomStream({.seed = number, .purpose = "tsetlin model test"});
}

BooleanizerSpec threshold(int level) {
  BooleanizerSpec spec;
  spec.level = level;
  return spec;
}

BooleanizerSpec thermometer(int levels) {
  BooleanizerSpec spec;
  spec.kind = "colour-thermometer";
  spec.levels = levels;
  return spec;
}

// Members that see 8 x 9 images of two channels in different ways, some of them in the same.
TsetlinModel mixed_model() {
  RandomStream random = stream(1);
  constexpr size_t kClasses = 3;
  std::vector<TsetlinMember> members = {
      random_member(threshold(100), {8, 9, 2, 3, 3}, kClasses, 20, random),
      random_member(thermometer(3), {8, 9, 6, 2, 2}, kClasses, 12, random),
      random_member(threshold(100), {8, 9, 2, 3, 3}, kClasses, 8, random),   // as the first
      random_member(threshold(30), {8, 9, 2, 3, 3}, kClasses, 10, random),   // another level
      random_member(threshold(100), {8, 9, 2, 8, 9}, kClasses, 30, random),  // flat
  };
  members[0].clamp = 6;
  members[0].scale = 6;
  members[1].scale = 0.3f;
  members[2].clamp = 1;
  members[3].scale = 0;  // the span
  members[4].clamp = 9;
  members[4].scale = 0;
  return TsetlinModel(kClasses, std::move(members));
}

TEST(TsetlinModel, ScoresAreThoseOfTheDefinition) {
  RandomStream random = stream(2);
  const Dataset data = random_dataset(300, 8, 9, 2, random);  // more than one chunk
  const TsetlinModel all = mixed_model();
  ThreadPool pool(1);
  for (size_t i = 0; i < all.members().size(); ++i) {
    const TsetlinModel one(3, {all.members()[i]});
    EXPECT_EQ(one.scores(data, pool), naive_scores(one, data)) << "member " << i;
  }
  const std::vector<float> found = all.scores(data, pool);
  EXPECT_EQ(found, naive_scores(all, data));
  // The largest wins, the lowest class among equals.
  const std::vector<uint16_t> labels = predict(all, data, pool);
  for (size_t i = 0; i < data.size(); ++i) {
    uint16_t best = 0;
    for (uint16_t label = 1; label < 3; ++label) {
      if (found[i * 3 + label] > found[i * 3 + best]) best = label;
    }
    EXPECT_EQ(labels[i], best);
  }
}

TEST(TsetlinModel, ThreadsDoNotChangeTheScores) {
  RandomStream random = stream(3);
  const TsetlinModel model = mixed_model();
  ThreadPool one(1);
  ThreadPool three(3);
  for (const size_t count : {1u, 255u, 256u, 257u, 1500u}) {
    const Dataset data = random_dataset(count, 8, 9, 2, random);
    const std::vector<float> scores = model.scores(data, one);
    EXPECT_EQ(scores.size(), count * 3);
    EXPECT_EQ(model.scores(data, three), scores) << count << " samples";
  }
}

TEST(TsetlinModel, NoSamplesNoScores) {
  RandomStream random = stream(3);
  ThreadPool pool(1);
  EXPECT_TRUE(mixed_model().scores(random_dataset(0, 8, 9, 2, random), pool).empty());
}

// One pixel; class 0: x of weight 5, class 1: not x of weight -2.
TsetlinMember tiny_member() {
  TsetlinMember member;
  member.booleanizer = threshold(75);
  member.shape = {1, 1, 1, 1, 1};
  member.clauses = 1;
  member.actions = BitMatrix(2, 2);
  member.actions.set(0, 0, true);
  member.actions.set(1, 1, true);
  member.weights = {5, -2};
  member.bias = {1, 10};
  return member;
}

Dataset two_pixels() {  // samples: 255, then 0
  Dataset data;
  data.name = "pixels";
  data.height = data.width = data.channels = 1;
  data.pixels = {255, 0};
  data.labels = {0, 1};
  data.class_names = {"a", "b"};
  return data;
}

TEST(TsetlinModel, BiasClampAndScaleByHand) {
  ThreadPool pool(1);
  const auto scores = [&](int32_t clamp, float scale) {
    TsetlinMember member = tiny_member();
    member.clamp = clamp;
    member.scale = scale;
    return TsetlinModel(2, {member}).scores(two_pixels(), pool);
  };
  EXPECT_THAT(scores(0, 1), ElementsAre(6, 10, 1, 8));
  EXPECT_THAT(scores(7, 1), ElementsAre(6, 7, 1, 7));
  EXPECT_THAT(scores(0, 4), ElementsAre(1.5f, 2.5f, 0.25f, 2));
  EXPECT_THAT(scores(0, 0), ElementsAre(6 / 9.0f, 10 / 9.0f, 1 / 9.0f, 8 / 9.0f));  // span 1 … 10
  EXPECT_THAT(scores(7, 0), ElementsAre(1, 7 / 6.0f, 1 / 6.0f, 7 / 6.0f));          // span 1 … 7
  EXPECT_THAT(scores(1, 0), ElementsAre(1, 1, 1, 1));                               // no span
  TsetlinMember halved = tiny_member();
  halved.scale = 2;
  EXPECT_THAT(TsetlinModel(2, {tiny_member(), halved}).scores(two_pixels(), pool),
              ElementsAre(9, 15, 1.5f, 12));
}

TEST(TsetlinModel, TiesGoToTheLowestClass) {
  TsetlinMember member = tiny_member();
  member.bias = {0, 7};
  member.weights = {7, -7};
  ThreadPool pool(1);
  const TsetlinModel model(2, {member});
  EXPECT_THAT(model.scores(two_pixels(), pool), ElementsAre(7, 7, 0, 0));
  EXPECT_THAT(predict(model, two_pixels(), pool), ElementsAre(0, 0));
}

TEST(TsetlinModel, MemberOfAMachine) {
  MachineOptions options;
  options.clauses = 4;
  options.threshold = 20;
  const PatchShape shape = {3, 3, 1, 2, 2};
  TsetlinMachine machine(options, shape, 2);
  BitMatrix actions(8, shape.literals());
  for (size_t row = 0; row < 8; ++row) actions.set(row, row, true);
  machine.restart_from(actions, std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8});
  const TsetlinMember member = member_of(machine, threshold(9));
  EXPECT_EQ(member.booleanizer, threshold(9));
  EXPECT_EQ(member.shape, shape);
  EXPECT_EQ(member.clauses, 4u);
  EXPECT_EQ(member.actions, actions);
  EXPECT_THAT(member.weights, ElementsAre(1, -2, 3, -4, 5, -6, 7, -8));
  EXPECT_THAT(member.bias, ElementsAre(0, 0));
  EXPECT_EQ(member.clamp, 20);
  EXPECT_EQ(member.scale, 20.0f);
}

TEST(TsetlinModel, Tables) {
  RandomStream random = stream(4);
  Dataset data;
  data.name = "table";
  data.columns = {"x", "y"};
  for (int i = 0; i < 60; ++i) data.values.push_back(static_cast<float>(random.uniform()));
  data.labels.assign(30, 0);
  data.class_names = {"a", "b"};
  BooleanizerSpec quantile;
  quantile.kind = "quantile";
  quantile.cuts = {{0.2f, 0.5f, 0.8f}, {0.4f}};
  const TsetlinModel model(2, {random_member(quantile, {1, 1, 4, 1, 1}, 2, 10, random)});
  ThreadPool pool(2);
  EXPECT_EQ(model.scores(data, pool), naive_scores(model, data));
  data.columns.push_back("z");
  data.values.resize(90);
  EXPECT_NE(error_text([&] { model.scores(data, pool); }), "");
}

TEST(TsetlinModel, RefusesSamplesThatDoNotFit) {
  RandomStream random = stream(5);
  const TsetlinModel model = mixed_model();
  ThreadPool pool(1);
  const auto refusal = [&](size_t height, size_t width, size_t channels) {
    const Dataset data = random_dataset(2, height, width, channels, random);
    return error_text([&] { model.scores(data, pool); });
  };
  EXPECT_EQ(refusal(8, 9, 2), "");
  EXPECT_EQ(refusal(9, 8, 2),
            "random: samples of 9 x 8 with 2 bits per pixel, but the model takes 8 x 9 with 2");
  EXPECT_THAT(refusal(8, 10, 2), HasSubstr("8 x 10"));
  EXPECT_THAT(refusal(8, 9, 1), HasSubstr("with 1 bits per pixel, but the model takes 8 x 9 with 2"));
  Dataset table;
  table.name = "table";
  table.columns = {"x"};
  table.values = {1};
  table.labels = {0};
  table.class_names = {"a"};
  EXPECT_NE(error_text([&] { model.scores(table, pool); }), "");
}

TEST(TsetlinModel, CostsByHand) {
  EXPECT_EQ(TsetlinModel(2, {tiny_member()}).costs().binary_ops, 2u);  // two literals, one patch
  TsetlinMember member;
  member.shape = {3, 4, 1, 2, 2};  // 2 x 3 patches, 1 + 2 position bits, 14 literals: 2 bytes a clause
  member.clauses = 2;
  member.actions = BitMatrix(6, 14);
  for (const size_t literal : {0u, 5u, 13u}) member.actions.set(0, literal, true);
  member.actions.set(3, 1, true);
  member.actions.set(4, 2, true);  // of weight 0: never looked at
  member.weights = {1, 1, 1, -1, 0, 1};
  member.bias = {0, 0, 0};
  const ModelCosts costs = TsetlinModel(3, {member, member}).costs();
  EXPECT_EQ(costs.binary_ops, 2u * (3 + 1) * 6);
  EXPECT_EQ(costs.flops, 2u * 3);
  // Actions 6 * 2, weights 6 * 4, bias 3 * 4, clamp and scale 4 each.
  EXPECT_EQ(costs.bytes, 2u * (12 + 24 + 12 + 4 + 4));
}

TEST(TsetlinModel, StateRoundTrip) {
  RandomStream random = stream(7);
  const TsetlinModel model = mixed_model();
  const State state = decode(encode(model.state()), "file");
  EXPECT_EQ(state, model.state());
  const auto back = tsetlin_model_from_state(state, "file");
  EXPECT_EQ(back->class_count(), 3u);
  ASSERT_EQ(back->members().size(), model.members().size());
  for (size_t i = 0; i < model.members().size(); ++i) {
    const TsetlinMember& a = model.members()[i];
    const TsetlinMember& b = back->members()[i];
    EXPECT_EQ(a.booleanizer, b.booleanizer);
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.clauses, b.clauses);
    EXPECT_EQ(a.actions, b.actions);
    EXPECT_EQ(a.weights, b.weights);
    EXPECT_EQ(a.bias, b.bias);
    EXPECT_EQ(a.clamp, b.clamp);
    EXPECT_EQ(a.scale, b.scale);
  }
  EXPECT_EQ(back->state().sha256(), model.state().sha256());
  const Dataset data = random_dataset(20, 8, 9, 2, random);
  ThreadPool pool(1);
  EXPECT_EQ(back->scores(data, pool), model.scores(data, pool));
}

TEST(TsetlinModel, StateByHand) {
  TsetlinMember member = tiny_member();
  member.clamp = 3;
  member.scale = 1.5f;
  const State state = TsetlinModel(2, {member}).state();
  EXPECT_EQ(state.text("bitfed.format"), "1");
  EXPECT_EQ(state.text("bitfed.kind"), "tsetlin");
  EXPECT_EQ(state.text("bitfed.classes"), "2");
  EXPECT_EQ(nlohmann::json::parse(state.text("bitfed.members")),
            nlohmann::json::parse(
                R"([{"booleanizer":{"kind":"threshold","level":75},"height":1,"width":1,"planes":1,
                                       "patch_height":1,"patch_width":1,"clauses":1}])"));
  EXPECT_THAT(state.values<uint8_t>("members.0.actions", {2, 1, 1}), ElementsAre(0b01, 0b10));
  EXPECT_THAT(state.values<int32_t>("members.0.weights", {2, 1}), ElementsAre(5, -2));
  EXPECT_THAT(state.values<int32_t>("members.0.bias", {2}), ElementsAre(1, 10));
  EXPECT_EQ(state.scalar<int32_t>("members.0.clamp"), 3);
  EXPECT_EQ(state.scalar<float>("members.0.scale"), 1.5f);
  EXPECT_EQ(state.tensors().size(), 5u);
}

TEST(TsetlinModel, AModelWithoutClausesIsItsBias) {
  TsetlinMember member = tiny_member();
  member.clauses = 0;
  member.actions = BitMatrix(0, 2);
  member.weights.clear();
  const auto back =
      tsetlin_model_from_state(decode(encode(TsetlinModel(2, {member}).state()), "file"), "file");
  ThreadPool pool(1);
  EXPECT_THAT(back->scores(two_pixels(), pool), ElementsAre(1, 10, 1, 10));
}

// A sound state of one member, with one thing after the other damaged.
class DamagedModel : public testing::Test {
 protected:
  DamagedModel() {
    TsetlinMember member = tiny_member();
    state_ = TsetlinModel(2, {member}).state();
    members_ = nlohmann::json::parse(state_.text("bitfed.members"));
  }

  // The error about the state as it is after `replacement` took the place of the tensor of its name, or the
  // tensor was dropped where the replacement has no bytes and no shape.
  std::string with_tensor(const Tensor& replacement, bool drop = false) {
    State damaged("file 9");
    damaged.metadata = state_.metadata;
    for (const Tensor& tensor : state_.tensors()) {
      if (tensor.name != replacement.name) {
        damaged.add(tensor);
      } else if (!drop) {
        damaged.add(replacement);
      }
    }
    return refusal(damaged);
  }

  std::string with_text(const std::string& key, const std::string& value) {
    State damaged = copy();
    damaged.metadata[key] = value;
    return refusal(damaged);
  }

  std::string with_field(const std::string& name, const nlohmann::json& value) {
    nlohmann::json members = members_;
    members[0][name] = value;
    return with_text("bitfed.members", members.dump());
  }

  State copy() {
    State damaged("file 9");
    damaged.metadata = state_.metadata;
    for (const Tensor& tensor : state_.tensors()) damaged.add(tensor);
    return damaged;
  }

  static std::string refusal(const State& state) {
    const std::string text = error_text([&] { tsetlin_model_from_state(state, "file 9"); });
    if (!text.empty()) {
      EXPECT_THAT(text, HasSubstr("file 9"));
    }
    return text;
  }

  template <typename T>
  static Tensor tensor_of(const std::string& name, std::vector<uint64_t> shape,
                          const std::vector<T>& values) {
    State state;
    state.add("members.0." + name, std::move(shape), values);
    return state.tensors()[0];
  }

  State state_;
  nlohmann::json members_;
};

TEST_F(DamagedModel, SoundAsItIs) {
  EXPECT_EQ(refusal(copy()), "");
  EXPECT_EQ(with_tensor(tensor_of<uint8_t>("actions", {2, 1, 1}, {3, 3})), "");
  EXPECT_EQ(with_field("clauses", 1), "");
}

TEST_F(DamagedModel, MissingOrMisshapenTensors) {
  for (const char* name : {"actions", "weights", "bias", "clamp", "scale"}) {
    EXPECT_THAT(with_tensor(tensor_of<uint8_t>(name, {0}, {}), true),
                AllOf(HasSubstr(name), HasSubstr("is missing")));
    EXPECT_THAT(with_tensor(tensor_of<uint16_t>(name, {2}, {1, 2})),
                AllOf(HasSubstr(name), HasSubstr("found U16 [2]")));
  }
  EXPECT_THAT(with_tensor(tensor_of<uint8_t>("actions", {1, 2, 1}, {1, 2})),
              HasSubstr("expected U8 [2, 1, 1]"));
  EXPECT_THAT(with_tensor(tensor_of<uint8_t>("actions", {2, 1, 2}, {1, 0, 2, 0})),
              HasSubstr("expected U8 [2, 1, 1]"));
  EXPECT_THAT(with_tensor(tensor_of<int32_t>("weights", {1, 2}, {5, -2})), HasSubstr("expected I32 [2, 1]"));
  EXPECT_THAT(with_tensor(tensor_of<int32_t>("bias", {3}, {1, 2, 3})), HasSubstr("expected I32 [2]"));
  EXPECT_THAT(with_tensor(tensor_of<int32_t>("clamp", {1}, {1})), HasSubstr("expected I32 []"));
}

TEST_F(DamagedModel, StrayBitsInActions) {
  EXPECT_EQ(with_tensor(tensor_of<uint8_t>("actions", {2, 1, 1}, {1, 4})),
            "file 9: tensor 'members.0.actions': row 1 has bits set past its 2 literals");
  EXPECT_THAT(with_tensor(tensor_of<uint8_t>("actions", {2, 1, 1}, {0x80, 0})), HasSubstr("row 0"));
}

TEST_F(DamagedModel, ClampAndScale) {
  EXPECT_THAT(with_tensor(tensor_of<int32_t>("clamp", {}, {-1})), HasSubstr("members.0.clamp: found -1"));
  EXPECT_EQ(with_tensor(tensor_of<int32_t>("clamp", {}, {INT32_MAX})), "");
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), -1.0f}) {
    EXPECT_THAT(with_tensor(tensor_of<float>("scale", {}, {bad})), HasSubstr("members.0.scale: found"))
        << bad;
  }
  EXPECT_EQ(with_tensor(tensor_of<float>("scale", {}, {0.0f})), "");
}

TEST_F(DamagedModel, Classes) {
  for (const char* bad :
       {"", "0", "-1", "65536", "18446744073709551615", "2.0", "two", "[2]", "2 2", "null"}) {
    EXPECT_NE(with_text("bitfed.classes", bad), "") << bad;
  }
  EXPECT_THAT(with_text("bitfed.classes", "3"), HasSubstr("expected I32 [3, 1]"));
}

TEST_F(DamagedModel, Members) {
  for (const char* bad : {"", "[", "{}", "[]", "1", "null", "[1]", "[null]", "[{}]", "[[]]"}) {
    EXPECT_NE(with_text("bitfed.members", bad), "") << bad;
  }
  EXPECT_NE(with_text("bitfed.members", std::string(100'000, '[')), "");
  EXPECT_NE(with_text("bitfed.members", std::string(100'000, '[') + std::string(100'000, ']')), "");
  nlohmann::json two = members_;
  two.push_back(two[0]);
  EXPECT_THAT(with_text("bitfed.members", two.dump()), HasSubstr("members.1.weights' is missing"));
}

TEST_F(DamagedModel, Shape) {
  for (const char* name : {"height", "width", "planes", "patch_height", "patch_width", "clauses"}) {
    for (const nlohmann::json& bad :
         {nlohmann::json(-1), nlohmann::json(1.0), nlohmann::json("1"), nlohmann::json(),
          nlohmann::json(UINT64_MAX), nlohmann::json(int64_t{1} << 32)}) {
      EXPECT_THAT(with_field(name, bad), HasSubstr(name)) << bad;
    }
    nlohmann::json members = members_;
    members[0].erase(name);
    EXPECT_THAT(with_text("bitfed.members", members.dump()), HasSubstr("is missing"));
  }
  for (const char* name : {"height", "width", "planes", "patch_height", "patch_width"}) {
    EXPECT_THAT(with_field(name, 0), HasSubstr("from 1"));
  }
  EXPECT_THAT(with_field("patch_height", 2), HasSubstr("from 1 to 1"));  // larger than the image
  EXPECT_THAT(with_field("patch_width", 2), HasSubstr("from 1 to 1"));
  EXPECT_THAT(with_field("planes", 32768), HasSubstr("65536 literals, expected at most 65535"));
  EXPECT_THAT(with_field("clauses", 2), HasSubstr("expected I32 [2, 2]"));
  EXPECT_THAT(with_field("clauses", (1 << 20) + 1), HasSubstr("clauses"));
}

TEST_F(DamagedModel, Booleanizer) {
  EXPECT_THAT(with_field("booleanizer", nlohmann::json()), HasSubstr("'kind' is missing"));
  EXPECT_THAT(with_field("booleanizer", nlohmann::json::parse(R"({"kind":"other"})")),
              HasSubstr("found 'other'"));
}

// A small file can speak of huge images. To tell its costs, nothing of their size may be allocated: the
// bitmaps of this one would take 34 GB.
TEST(TsetlinModel, CostsOfHugeImagesAreCountedNotBuilt) {
  TsetlinMember member;
  member.shape = {4096, 4096, 1, 1, 1};
  member.clauses = 2;
  member.actions = BitMatrix(2, member.shape.literals());
  member.actions.set(0, 3, true);
  member.actions.set(0, 8190, true);
  member.actions.set(1, 5, true);  // of no weight
  member.weights = {7, 0};
  member.bias = {0};
  EXPECT_EQ(TsetlinModel(1, {member}).costs().binary_ops, uint64_t{2} * 4096 * 4096);
}

}  // namespace
}  // namespace bitfed
