#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using hand_made::literals_of;
using hand_made::weights_of;
using ::testing::ElementsAre;

constexpr const char* kRecipe =
    "[model]\nname = \"tm\"\nclauses = 2\nthreshold = 20\n[method]\nname = \"fedtm-largest\"\n"
    "server_models = 2\n";

State says(uint16_t label, uint32_t samples, int32_t weight, size_t literal) {
  return hand_made::upload_of(
      {{.label = label, .samples = samples, .weights = {weight, 1}, .clauses = {{literal}, {}}}}, 6);
}

// Class 0: of three holders the two largest; class 1: its only holder votes twice; class 2: nobody.
TEST(FedtmLargestTest, EachClassByItsLargestHolders) {
  const auto server = hand_made::method_of(kRecipe, hand_made::images(3, 3))->make_server();
  const auto model = hand_made::fuse(
      *server, {says(0, 50, 10, 0), says(0, 90, 11, 1), says(0, 70, 12, 2), says(1, 5, 13, 3)});
  ASSERT_EQ(model->members().size(), 2u);
  EXPECT_THAT(weights_of(model->members()[0], 0), ElementsAre(11, -1));
  EXPECT_THAT(weights_of(model->members()[1], 0), ElementsAre(12, -1));
  EXPECT_THAT(literals_of(model->members()[0], 1, 0), ElementsAre(3));
  EXPECT_THAT(literals_of(model->members()[1], 1, 0), ElementsAre(3));
  for (const TsetlinMember& member : model->members()) {
    EXPECT_EQ(member.clamp, 0);
    EXPECT_LT(member.bias[2], -1);
    EXPECT_EQ(member.bias[1], 0);
  }
}

}  // namespace
}  // namespace bitfed
