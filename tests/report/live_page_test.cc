#include "bitfed/report/pages/live_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bitfed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FederationStatus status() {
  FederationStatus status;
  status.about = {.name = "night",
                  .method = "fedtm",
                  .dataset = "mnist",
                  .federation = "0a1b",
                  .rounds = 9,
                  .clients = 3,
                  .clients_per_round = 3};
  status.phase = "training";
  status.round = 2;
  status.waiting_for = 1;
  status.upload_bytes = 2000;
  status.clients_known = {{.client = 0, .name = "<b>ann", .state = "ready", .samples = 5, .last_round = 1},
                          {.client = 1, .name = "bob", .state = "away"}};
  status.curve = {{.round = 1, .seconds = 0.5, .accuracy = 0.5},
                  {.round = 2, .seconds = 0.5, .accuracy = 0.75}};
  status.faults = {{.kind = "late", .name = "<i>x", .text = "<script>"}};
  return status;
}

TEST(LivePage, ShowsWhereTheFederationStands) {
  const std::string page = live_page(status());
  for (const char* text : {"<h1>night</h1>", "2 of 9", "1 of 3", "75.00 %", "waiting for 1",
                           "http-equiv=\"refresh\"", "<svg", "late"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST(LivePage, WhatClientsSayIsEscaped) {
  const std::string page = live_page(status());
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;ann"));
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, Not(HasSubstr("<i>x")));
}

// What differential privacy has spent, and its curve.
TEST(LivePage, Epsilon) {
  EXPECT_THAT(live_page(status()), Not(HasSubstr("psilon")));
  FederationStatus of_private = status();
  of_private.curve[0].epsilon = 0.5;
  of_private.curve[1].epsilon = 0.8125;
  const std::string page = live_page(of_private);
  for (const char* text : {"0.812", "spent by differential privacy", "Privacy spent: epsilon"})
    EXPECT_THAT(page, HasSubstr(text));
}

TEST(LivePage, BeforeAnythingHasHappened) {
  EXPECT_THAT(live_page({}), HasSubstr("None has come yet"));
}

}  // namespace
}  // namespace bitfed
