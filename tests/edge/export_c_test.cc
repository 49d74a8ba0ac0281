#include "bitfed/edge/c/export_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_text.h"
#include "tests/edge/exported_c.h"
#include "tests/edge/some_models.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

void expect_same_answers(const std::vector<SomeModel>& models, const std::string& flags = "") {
  if (std::system("cc --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no C compiler";
  for (const SomeModel& some : models) {
    const Answers found = run_exported_c(*some.model, some.samples, flags);
    const Answers expected = answers_of(*some.model, some.samples);
    EXPECT_EQ(found.classes, expected.classes) << some.name;
    EXPECT_EQ(found.scores, expected.scores) << some.name;
  }
}

TEST(ExportC, TsetlinMachinesAnswerBitForBit) {
  expect_same_answers(some_tsetlin_models());
}

TEST(ExportC, PerceptronsAnswerBitForBit) {
  expect_same_answers(some_mlp_models());
}

TEST(ExportC, NetworksAnswerBitForBit) {
  expect_same_answers(some_network_models());
  expect_same_answers(some_static_networks());
}

TEST(ExportC, NetworksLayerByLayerAnswerBitForBit) {
  expect_same_answers(some_resnet_models());
  expect_same_answers(some_custom_networks());
}

// GNU C contracts to fused multiply-adds where there are some, unless it is told not to.
TEST(ExportC, RoundsAsWrittenWhateverTheCompilerLikes) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "no fused multiply-add";
  expect_same_answers(
      {some_mlp_models().front(), some_network_models().front(), some_static_networks().front(),
       some_custom_networks().front(), some_tsetlin_models()[2]},
      "-std=gnu11 -O2 -mfma");
#else
  GTEST_SKIP() << "a flag of x86";
#endif
}

TEST(ExportC, NeedsNothingOfTheLibraryButMemcpy) {
  for (const std::vector<SomeModel>& models :
       {some_tsetlin_models(), some_mlp_models(), some_network_models(), some_static_networks(),
        some_custom_networks()}) {
    for (const SomeModel& some : models) {
      const CExport code =
          export_c(*some.model, "model", std::vector<std::string>(some.model->class_count()));
      EXPECT_GT(code.table_bytes, 0u);
      for (const char* word : {"malloc", "<math.h>", "<stdio.h>", "<stdlib.h>", "printf", "@"})
        EXPECT_THAT(code.source, Not(HasSubstr(word))) << some.name;
    }
  }
}

// Between blocks bits alone; values are the last block's.
TEST(ExportC, StaticNetworksTakeLessMemory) {
  const SomeModel some = some_static_networks().front();
  const CExport code = export_c(*some.model, "model", std::vector<std::string>(10));
  EXPECT_EQ(code.ram_bytes, 4u * (14 * 14 + 7 * 7 * 2 + 256));
  EXPECT_THAT(code.source, HasSubstr("static float values[256];"));
  EXPECT_THAT(code.source, Not(HasSubstr("take_signs")));
}

TEST(ExportC, SaysWhatItCannotCarry) {
  const SomeModel flat = some_tsetlin_models().front();
  const std::vector<std::string> names(3, "a");
  EXPECT_THAT(error_text([&] { export_c(*flat.model, "2nd", names); }), HasSubstr("--name"));
  EXPECT_THAT(error_text([&] { export_c(*flat.model, "a b", names); }), HasSubstr("identifier"));
  std::vector<TsetlinMember> members = dynamic_cast<const TsetlinModel&>(*flat.model).members();
  members[0].scale = 0;
  EXPECT_THAT(error_text([&] { export_c(TsetlinModel(3, members), "model", names); }),
              HasSubstr("depend on the batch"));
  RandomStream random = edge_random(8);
  const TsetlinMember odd = random_member(booleanizer("colour-thermometer"), {4, 4, 7, 2, 2}, 3, 4, random);
  EXPECT_THAT(error_text([&] { export_c(TsetlinModel(3, {odd}), "model", names); }),
              HasSubstr("different inputs"));
}

}  // namespace
}  // namespace bitfed
