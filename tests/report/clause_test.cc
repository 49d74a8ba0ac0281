#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/report/charts/clause_picture.h"
#include "tests/report/xml_check.h"

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// 4x4 images, 2x2 patches: 3 positions a side, so literals y > 0, y > 1, x > 0, x > 1, then the patch's
// 4 * planes bits, then the negations of all.
TsetlinMember make_member(size_t classes, size_t clauses, size_t planes = 1) {
  TsetlinMember member;
  member.shape = {.height = 4, .width = 4, .planes = planes, .patch_height = 2, .patch_width = 2};
  member.clauses = clauses;
  member.actions = BitMatrix(classes * clauses, member.shape.literals());
  member.weights.assign(classes * clauses, 1);
  member.bias.assign(classes, 0);
  return member;
}

TEST(ClauseLogic, ReadsPositionAndContent) {
  TsetlinMember member = make_member(1, 1);
  member.weights[0] = 37;
  member.actions.set(0, 0, true);       // y > 0
  member.actions.set(0, 8 + 3, true);   // not x > 1
  member.actions.set(0, 4 + 1, true);   // p(0,1)
  member.actions.set(0, 12 + 2, true);  // not p(1,0)
  const auto clauses = strongest_clauses({member}, 0, 5);
  ASSERT_EQ(clauses.size(), 1u);
  EXPECT_EQ(clauses[0].literals, 4u);
  EXPECT_EQ(clauses[0].y.first, 1u);
  EXPECT_EQ(clauses[0].y.last, 2u);
  EXPECT_EQ(clauses[0].x.first, 0u);
  EXPECT_EQ(clauses[0].x.last, 1u);
}

TEST(ClauseLogic, WritesLogic) {
  std::vector<TsetlinMember> members = {make_member(2, 2)};
  BitMatrix& actions = members[0].actions;
  members[0].weights = {5, 37, -4, 2};
  actions.set(0, 4, true);
  actions.set(1, 0, true);
  actions.set(1, 4 + 1, true);
  actions.set(1, 12 + 2, true);
  actions.set(2, 4, true);
  actions.set(3, 8 + 0, true);  // not y > 0: y = 0
  EXPECT_THAT(
      strongest_clauses_text(members, {"cat"}, 3),
      ElementsAre("cat", "  +37  y in 1..2: p(0,1) & !p(1,0)", "  +5  p(0,0)", "class 1", "  +2  y = 0"));
}

TEST(ClauseLogic, LeavesOutEmptyAndOpposing) {
  TsetlinMember member = make_member(1, 3);
  member.weights = {9, -9, 0};
  member.actions.set(1, 4, true);
  member.actions.set(2, 4, true);
  EXPECT_THAT(strongest_clauses({member}, 0, 5), IsEmpty());
  EXPECT_EQ(clause_pictures({member}, {}, 5), "");
  EXPECT_EQ(clause_pictures(std::vector<TsetlinMember>{}, {}, 5), "");
}

TEST(ClauseLogic, RanksMembersByTheirScale) {
  std::vector<TsetlinMember> members = {make_member(1, 1), make_member(1, 1)};
  for (TsetlinMember& member : members) member.actions.set(0, 4, true);
  members[0].weights = {10};
  members[0].scale = 10;
  members[1].weights = {5};
  const auto clauses = strongest_clauses(members, 0, 2);
  EXPECT_EQ(clauses[0].member_index, 1u);
  EXPECT_EQ(clauses[1].member_index, 0u);
}

TEST(ClauseLogic, CutsLongClauses) {
  TsetlinMember member = make_member(1, 1);
  for (size_t bit = 0; bit < 4; ++bit) member.actions.set(0, 4 + bit, true);
  EXPECT_EQ(clause_text(strongest_clauses({member}, 0, 1)[0], 2), "+1  p(0,0) & p(0,1) … (2 more)");
}

TEST(ClauseLogic, NamesColumnsOfTables) {
  TsetlinMember member;
  member.booleanizer.kind = "quantile";
  member.booleanizer.cuts = {{0.5f, 1.5f}, {2.25f}};
  member.shape = {.height = 1, .width = 1, .planes = 3, .patch_height = 1, .patch_width = 1};
  member.clauses = 1;
  member.actions = BitMatrix(1, 6);
  member.weights = {3};
  member.bias = {0};
  member.actions.set(0, 1, true);
  member.actions.set(0, 3 + 2, true);
  EXPECT_EQ(clause_text(strongest_clauses({member}, 0, 1)[0]), "+3  column 0 > 1.5 & column 1 <= 2.25");
  EXPECT_EQ(clause_text(strongest_clauses({member}, 0, 1)[0], 24, {"age", "height"}),
            "+3  age > 1.5 & height <= 2.25");
  EXPECT_THAT(clause_pictures({member}, {"<x>"}, 1), HasSubstr("column 1 &lt;= 2.25"));
}

// Column 0 has the cuts 0.5, 1.5 and 2.5: > 1.5 implies > 0.5, and is never <= 0.5.
TEST(ClauseLogic, ImpliedLiteralsAreLeftOutAndContradictionsComeLast) {
  TsetlinMember member;
  member.booleanizer.kind = "quantile";
  member.booleanizer.cuts = {{0.5f, 1.5f, 2.5f}};
  member.shape = {.height = 1, .width = 1, .planes = 3, .patch_height = 1, .patch_width = 1};
  member.clauses = 2;
  member.actions = BitMatrix(2, 6);
  member.weights = {9, 1};
  member.bias = {0};
  member.actions.set(0, 1, true);  // > 1.5
  member.actions.set(0, 3, true);  // <= 0.5
  for (const size_t literal : {0, 1, 5}) member.actions.set(1, literal, true);
  const std::vector<TsetlinMember> members = {member};
  EXPECT_THAT(strongest_clauses_text(members, {"cat"}, 3, {"age"}),
              ElementsAre("cat", "  +1  age > 1.5 & age <= 2.5", "  +9  age <= 0.5 & age > 1.5"));
  EXPECT_THAT(strongest_clauses_text(members, {"cat"}, 1, {"age"}),
              ElementsAre("cat", "  +1  age > 1.5 & age <= 2.5"));
}

// A patch of 84 makes pixels of 42; a frame of 52 pixels of 13, from x = 84 + 12.
TEST(ClausePicture, DrawsPixelsAndRegion) {
  TsetlinMember member = make_member(1, 1);
  member.actions.set(0, 0, true);       // y > 0: rows 1 to 3
  member.actions.set(0, 4 + 1, true);   // p(0,1)
  member.actions.set(0, 12 + 2, true);  // not p(1,0)
  const std::string svg = clause_picture(strongest_clauses({member}, 0, 1)[0]);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr(R"(<rect x="43" y="1" width="42" height="42" class="f-ink")"));
  EXPECT_THAT(svg, HasSubstr(R"(<rect x="1" y="43" width="42" height="42" class="f-contrast")"));
  EXPECT_THAT(svg, HasSubstr(R"(<rect x="96" y="14" width="52" height="39" class="f-accent")"));
}

TEST(ClausePicture, HatchesContradictions) {
  TsetlinMember member = make_member(1, 1);
  member.actions.set(0, 4, true);
  member.actions.set(0, 12, true);
  const std::string svg = clause_picture(strongest_clauses({member}, 0, 1)[0]);
  EXPECT_EQ(occurrences(svg, R"(class="s-contrast")"), 6u);
  EXPECT_THAT(svg, Not(HasSubstr("f-ink")));
}

TEST(ClausePicture, SharesAPixelAmongPlanes) {
  TsetlinMember member = make_member(1, 1, 2);
  member.actions.set(0, 4 + 0, true);       // pixel 0, plane 0 must be 1
  member.actions.set(0, 12 + 4 + 1, true);  // pixel 0, plane 1 must be 0
  member.actions.set(0, 4 + 2, true);       // pixel 1, plane 0 must be 1: half of its planes
  const std::string svg = clause_picture(strongest_clauses({member}, 0, 1)[0]);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(occurrences(svg, "<polygon"), 2u);
  EXPECT_THAT(svg, HasSubstr(R"(class="f-ink" fill="#1b1f24" fill-opacity="0.65")"));
}

TEST(ClausePicture, NowhereAndFlat) {
  TsetlinMember member = make_member(1, 1);
  member.actions.set(0, 1, true);                       // y > 1
  member.actions.set(0, 8, true);                       // not y > 0
  const std::vector<TsetlinMember> members = {member};  // a view outlives no temporary
  const ClauseView clause = strongest_clauses(members, 0, 1)[0];
  EXPECT_EQ(clause_text(clause), "+1  y nowhere");
  EXPECT_THAT(clause_picture(clause), HasSubstr(">nowhere<"));

  TsetlinMember flat;
  flat.shape = {.height = 3, .width = 3, .planes = 1, .patch_height = 3, .patch_width = 3};
  flat.clauses = 1;
  flat.actions = BitMatrix(1, 18);
  flat.actions.set(0, 8, true);
  flat.weights = {1};
  flat.bias = {0};
  const std::string svg = clause_picture(strongest_clauses({flat}, 0, 1)[0]);
  EXPECT_THAT(svg, HasSubstr(R"(width="86" height="86")"));
  EXPECT_THAT(svg, Not(HasSubstr("f-accent")));
}

}  // namespace
}  // namespace bitfed
