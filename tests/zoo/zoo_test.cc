#include "bitfed/zoo/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "bitfed/tsetlin/tsetlin_model.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using testing::AllOf;
using testing::HasSubstr;

State constant_model() {
  TsetlinMember member;
  member.shape = {1, 1, 1, 1, 1};
  member.actions = BitMatrix(0, 2);
  member.bias = {3, 4};
  return TsetlinModel(2, {member}).state();
}

std::string refusal(const State& state) {
  return error_text([&] { load_model(state, "model.safetensors"); });
}

TEST(Zoo, LoadsWhatItsModelsWrite) {
  const auto model = load_model(constant_model(), "model.safetensors");
  EXPECT_EQ(model->class_count(), 2u);
  EXPECT_EQ(model->state(), constant_model());
}

TEST(Zoo, RefusesForeignFiles) {
  State foreign("model.safetensors");
  foreign.add("conv1.weight", {2}, std::vector<float>{1, 2});
  foreign.metadata["format"] = "pt";
  EXPECT_THAT(refusal(foreign), AllOf(HasSubstr("model.safetensors: "), HasSubstr("not a model of bitfed")));
  EXPECT_THAT(refusal(State()), HasSubstr("not a model of bitfed"));
}

TEST(Zoo, RefusesNewerVersionsAndUnknownKinds) {
  State newer = constant_model();
  newer.metadata["bitfed.format"] = "2";
  EXPECT_EQ(refusal(newer), "model.safetensors: format version '2', expected 1: made by a newer bitfed?");
  for (const char* odd : {"", "01", "1.0", "one"}) {
    newer.metadata["bitfed.format"] = odd;
    EXPECT_THAT(refusal(newer), HasSubstr("format version")) << odd;
  }
  State unknown = constant_model();
  unknown.metadata["bitfed.kind"] = "forest";
  EXPECT_EQ(refusal(unknown),
            "model.safetensors: metadata 'bitfed.kind': found 'forest', expected tsetlin, mlp or network");
  unknown.metadata.erase("bitfed.kind");
  EXPECT_THAT(refusal(unknown), HasSubstr("metadata 'bitfed.kind' is missing"));
  State cut = constant_model();
  cut.metadata.erase("bitfed.members");
  EXPECT_THAT(refusal(cut), HasSubstr("'bitfed.members' is missing"));
}

TEST(Zoo, EveryModelIsListedOnceWithALine) {
  std::set<std::string> names;
  for (const ModelEntry& entry : models()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.description.empty());
    EXPECT_EQ(entry.description.find('\n'), std::string::npos);
  }
  EXPECT_EQ(names, (std::set<std::string>{"tm", "ctm", "ctm-composite", "mlp", "cnn4", "resnet10", "resnet18",
                                          "custom"}));
}

}  // namespace
}  // namespace bitfed
