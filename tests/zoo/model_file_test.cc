#include "bitfed/zoo/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/model/state.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TsetlinModel some_model() {
  TsetlinMember member;
  member.shape = {1, 1, 1, 1, 1};
  member.actions = BitMatrix(0, 2);
  member.bias = {3, 4};
  return TsetlinModel(2, {member});
}

TEST(ModelFile, IsReadAsItIsWritten) {
  const TemporaryFolder folder;
  write_state(folder / "model.safetensors",
              model_file_state(some_model(), "a run", {"cat", "\"dog\""}, "seed = 1\n"));
  const ModelFile file = read_model_file((folder / "model.safetensors").string());
  EXPECT_EQ(file.name, "a run");
  EXPECT_THAT(file.class_names, ElementsAre("cat", "\"dog\""));
  EXPECT_EQ(file.data, "seed = 1\n");
  EXPECT_EQ(file.sha256, some_model().state().sha256());
  EXPECT_EQ(file.model->state(), some_model().state());
}

TEST(ModelFile, KeepsTheNamesOfColumns) {
  TsetlinMember member;
  member.booleanizer.kind = "quantile";
  member.booleanizer.bins = 2;
  member.booleanizer.cuts = {{0.5f}, {1.5f}};
  member.shape = {.height = 1, .width = 1, .planes = 2, .patch_height = 1, .patch_width = 1};
  member.actions = BitMatrix(0, 4);
  member.bias = {3, 4};
  const TsetlinModel model(2, {member});
  const State state = model_file_state(model, "", {"a", "b"}, "", {{"height", "weight"}, "0123"});
  const ModelFile file = model_file_of(state, "model");
  EXPECT_THAT(file.columns, ElementsAre("height", "weight"));
  EXPECT_EQ(file.trained_on, "0123");
  EXPECT_THAT(error_text([&] {
                model_file_of(model_file_state(model, "", {"a", "b"}, "", {{"height"}, ""}), "m");
              }),
              HasSubstr("bitfed.columns': found 1, expected one for each of 2 columns"));
}

TEST(ModelFile, WithoutMetadataClassesAreNumbered) {
  const ModelFile file = model_file_of(some_model().state(), "model");
  EXPECT_EQ(file.name, "");
  EXPECT_EQ(file.data, "");
  EXPECT_THAT(file.class_names, ElementsAre("0", "1"));
  EXPECT_THAT(error_text([] { model_file_of(model_file_state(some_model(), "", {"cat"}, ""), "model"); }),
              HasSubstr("class_names': found 1, expected one for each of 2 classes"));
}

}  // namespace
}  // namespace bitfed
