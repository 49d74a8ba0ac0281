#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "include/bitfed.h"
#include "tests/edge/exported_c.h"
#include "tests/edge/some_models.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

int predict_all(const bitfed_model* model, const Dataset& samples, size_t count, Answers* answers) {
  answers->classes.resize(count);
  answers->scores.resize(count * bitfed_class_count(model));
  if (samples.is_table())
    return bitfed_predict_numbers(model, samples.values.data(), count, answers->classes.data(),
                                  answers->scores.data());
  return bitfed_predict_pixels(model, samples.pixels.data(), count, answers->classes.data(),
                               answers->scores.data());
}

std::vector<uint16_t> classes_alone(const bitfed_model* model, const Dataset& samples) {
  std::vector<uint16_t> classes(samples.size());
  const int failed =
      samples.is_table()
          ? bitfed_predict_numbers(model, samples.values.data(), classes.size(), classes.data(), nullptr)
          : bitfed_predict_pixels(model, samples.pixels.data(), classes.size(), classes.data(), nullptr);
  EXPECT_EQ(failed, 0) << bitfed_error();
  return classes;
}

TEST(CApi, AnswersAreTheModels) {
  for (const SomeModel& some : all_some_models()) {
    const Bytes bytes = encode(some.model->state());
    bitfed_model* model = bitfed_open_bytes(bytes.data(), bytes.size());
    ASSERT_NE(model, nullptr) << some.name << ": " << bitfed_error();
    const bitfed_input input = bitfed_input_of(model);
    EXPECT_EQ(input.inputs * some.samples.size(),
              some.samples.is_table() ? some.samples.values.size() : some.samples.pixels.size());
    Answers found;
    ASSERT_EQ(predict_all(model, some.samples, some.samples.size(), &found), 0) << bitfed_error();
    const Answers expected = answers_of(*some.model, some.samples);
    EXPECT_EQ(found.classes, expected.classes) << some.name;
    EXPECT_EQ(found.scores, expected.scores) << some.name;
    EXPECT_EQ(classes_alone(model, some.samples), expected.classes) << some.name;
    EXPECT_STREQ(bitfed_class_name(model, 0), "0");
    EXPECT_EQ(bitfed_class_name(model, bitfed_class_count(model)), nullptr);
    const uint8_t pixel = 0;
    const float number = 0;
    const int wrong = some.samples.is_table() ? bitfed_predict_pixels(model, &pixel, 1, nullptr, nullptr)
                                              : bitfed_predict_numbers(model, &number, 1, nullptr, nullptr);
    EXPECT_EQ(wrong, -1);
    EXPECT_THAT(bitfed_error(), HasSubstr("the model takes"));
    bitfed_close(model);
  }
}

// Where sums are divided by their span over a call, the samples of a call go together.
TEST(CApi, ScoresMayDependOnAllSamplesOfTheCall) {
  RandomStream random = edge_random(2);
  std::vector<TsetlinMember> members;
  for (const char* kind : {"threshold", "adaptive-gaussian"})
    members.push_back(random_member(booleanizer(kind), {6, 7, 1, 3, 3}, 3, 40, random));
  for (TsetlinMember& member : members) member.scale = 0;
  const TsetlinModel spanned(3, members);
  const Bytes bytes = encode(spanned.state());
  bitfed_model* model = bitfed_open_bytes(bytes.data(), bytes.size());
  ASSERT_NE(model, nullptr) << bitfed_error();
  for (const size_t count : {size_t{700}, size_t{1}, size_t{60}}) {
    const Dataset samples = random_dataset(count, 6, 7, 1, random);
    Answers found;
    ASSERT_EQ(predict_all(model, samples, count, &found), 0) << bitfed_error();
    const Answers expected = answers_of(spanned, samples);
    EXPECT_EQ(found.scores, expected.scores) << count;
    EXPECT_EQ(found.scores, naive_scores(spanned, samples)) << count;
    EXPECT_EQ(classes_alone(model, samples), expected.classes) << count;
  }
  bitfed_close(model);
}

// Members that take different samples, and more memory than a small file may ask for.
TEST(CApi, RefusesModelsThatCannotPredict) {
  RandomStream random = edge_random(2);
  const auto open = [&](const std::vector<TsetlinMember>& members) {
    const Bytes bytes = encode(TsetlinModel(3, members).state());
    return bitfed_open_bytes(bytes.data(), bytes.size());
  };
  EXPECT_EQ(open({random_member(booleanizer("threshold"), {6, 7, 1, 3, 3}, 3, 4, random),
                  random_member(booleanizer("threshold"), {6, 8, 1, 3, 3}, 3, 4, random)}),
            nullptr);
  EXPECT_THAT(bitfed_error(), HasSubstr("samples of 6 x 7 with 1 bits per pixel"));
  EXPECT_EQ(open({random_member(booleanizer("threshold"), {4096, 4096, 1, 3, 3}, 3, 0, random)}), nullptr);
  EXPECT_THAT(bitfed_error(), HasSubstr("16390 literals"));
}

TEST(CApi, SaysWhatIsWrong) {
  EXPECT_EQ(bitfed_open("/nowhere/model.safetensors"), nullptr);
  EXPECT_THAT(bitfed_error(), HasSubstr("/nowhere/model.safetensors"));
  EXPECT_EQ(bitfed_open_bytes("nonsense", 8), nullptr);
  EXPECT_THAT(bitfed_error(), HasSubstr("model"));
  bitfed_close(nullptr);
}

// Refused, or it answers; run under sanitizers too.
TEST(CApi, BrokenFilesDoNoHarm) {
  for (const SomeModel& some : all_some_models()) {
    const Bytes whole = encode(some.model->state());
    const size_t step = whole.size() / 60 + 1;
    for (size_t at = 0; at < whole.size(); at += step) {
      for (const bool cut : {true, false}) {
        Bytes broken = whole;
        if (cut) broken.resize(at);
        if (!cut) broken[at] = static_cast<uint8_t>(broken[at] ^ (1 << (at % 8)));
        bitfed_model* model = bitfed_open_bytes(broken.data(), broken.size());
        if (model == nullptr) {
          EXPECT_STRNE(bitfed_error(), "");
          continue;
        }
        EXPECT_FALSE(cut);
        Answers answers;
        const size_t inputs =
            some.samples.is_table() ? some.samples.columns.size() : some.samples.image_bytes();
        if (bitfed_input_of(model).inputs == inputs) predict_all(model, some.samples, 1, &answers);
        bitfed_close(model);
      }
    }
  }
}

}  // namespace
}  // namespace bitfed
