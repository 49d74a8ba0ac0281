#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "include/bitfed.h"
#include "tests/edge/exported_c.h"
#include "tests/edge/some_models.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

std::vector<SomeModel> all_models() {
  std::vector<SomeModel> all = some_tsetlin_models();
  for (const std::vector<SomeModel>& more :
       {some_mlp_models(), some_network_models(), some_static_networks()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

int predict_all(const bitfed_model* model, const Dataset& samples, size_t count, Answers* answers) {
  answers->classes.resize(count);
  answers->scores.resize(count * bitfed_class_count(model));
  if (samples.is_table())
    return bitfed_predict_numbers(model, samples.values.data(), count, answers->classes.data(),
                                  answers->scores.data());
  return bitfed_predict_pixels(model, samples.pixels.data(), count, answers->classes.data(),
                               answers->scores.data());
}

TEST(CApi, AnswersAreTheModels) {
  for (const SomeModel& some : all_models()) {
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

TEST(CApi, SaysWhatIsWrong) {
  EXPECT_EQ(bitfed_open("/nowhere/model.safetensors"), nullptr);
  EXPECT_THAT(bitfed_error(), HasSubstr("/nowhere/model.safetensors"));
  EXPECT_EQ(bitfed_open_bytes("nonsense", 8), nullptr);
  EXPECT_THAT(bitfed_error(), HasSubstr("model"));
  bitfed_close(nullptr);
}

// Refused, or it answers; run under sanitizers too.
TEST(CApi, BrokenFilesDoNoHarm) {
  for (const SomeModel& some : all_models()) {
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
