#include "bitfed/report/pages/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/report/xml_check.h"

namespace bitfed {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kHostile = "<script>alert('1')</script>\"&<img src=x onerror=y>";

RunFolder hostile_run() {
  RunFolder run;
  run.folder = kHostile;
  RunSummary& s = run.summary;
  s.name = s.method = s.model = s.dataset = s.partition = kHostile;
  s.version = s.isa = s.model_sha256 = kHostile;
  s.class_names = {kHostile, kHostile};
  s.notes = {kHostile};
  s.confusion_matrix = {{3, 1}, {0, 4}};
  s.client_class_counts = {{1, 2}, {3, 4}};
  s.accuracy = 0.875;
  s.upload_bytes_per_client = 48213;
  s.upload_bytes_raw = 91234;
  s.wall_seconds = 26.4;
  s.rounds = 50;
  s.local_accuracy_mean = 0.75;
  s.download_bytes_per_client = 48213;
  s.airtime = {{300, 1285.68, 1285.68}};
  s.client_results = {{0, kHostile, 3, 2, 0.5, 0.75}, {1, kHostile + "2", 7, 0, {}, {}}};
  run.recipe = kHostile + "</pre></details>";
  run.clients = {{.round = 1, .client = 0, .samples = 3}};  // shown by the name in client_results
  TsetlinMember member;
  member.shape = {.height = 3, .width = 3, .planes = 1, .patch_height = 2, .patch_width = 2};
  member.clauses = 1;
  member.actions = BitMatrix(2, member.shape.literals());
  member.actions.set(0, 3, true);
  member.weights = {7, 1};
  member.bias = {0, 0};
  run.machines = {member};
  return run;
}

// Only tags that the page itself writes, and nothing that would be fetched or run.
void expect_harmless(const std::string& page) {
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("</pre></details></pre>")));
  EXPECT_THAT(page, Not(HasSubstr("src=\"")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("url(")));
  static const std::regex kLink("(href|src)=\"([^#][^\"]*)\"");
  EXPECT_FALSE(std::regex_search(page, kLink));
  EXPECT_EQ(occurrences(page, "http"), occurrences(page, "xmlns=\"http://www.w3.org/2000/svg\""));
}

// The body, whose elements are all closed; the head has <meta>, and CSS is no markup.
std::string body_of(const std::string& page) {
  const size_t begin = page.find("<body>");
  return page.substr(begin, page.find("</html>") - begin);
}

TEST(Page, EscapesEverythingFromOutside) {
  const std::string one = report_page({hostile_run()});
  expect_harmless(one);
  EXPECT_THAT(one, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(one, HasSubstr("Strongest clauses"));
  const std::string two = report_page({hostile_run(), hostile_run()});
  expect_harmless(two);
  EXPECT_THAT(two, HasSubstr("2 runs compared"));
}

TEST(Page, IsWellFormed) {
  for (const size_t count : {1, 2, 5}) {
    const std::string body = body_of(report_page(std::vector<RunFolder>(count, hostile_run())));
    EXPECT_EQ(xml_fault(std::regex_replace(body, std::regex(" open>"), ">")), "");
  }
}

TEST(Page, ShowsNumbersForPeopleAndExactOnes) {
  const std::string page = report_page({hostile_run()});
  EXPECT_THAT(page, HasSubstr("<span title=\"48,213 bytes\">48.2 KB</span>"));
  EXPECT_THAT(page, HasSubstr("<span title=\"91,234 bytes\">91.2 KB</span>"));
  EXPECT_THAT(page, HasSubstr("<span title=\"0.875\">87.50 %</span>"));
  EXPECT_THAT(page, HasSubstr("<span title=\"26.4 seconds\">26.4 s</span>"));
}

TEST(Page, LeavesOutWhatIsMissing) {
  const std::string page = report_page({RunFolder{}});
  EXPECT_EQ(xml_fault(body_of(page)), "");
  for (const char* heading :
       {"Notes", "Clients", "Confusion matrix", "Who holds what", "clauses</h3>", "Recipe", "Own models",
        "Who gains", "Everyone", "Chosen devices", "Over a slow radio"}) {
    EXPECT_THAT(body_of(page), Not(HasSubstr(heading))) << heading;
  }
}

TEST(Page, DrawsACurveOverRoundsAndBarsOfOne) {
  RunFolder run;
  run.summary.accuracy = 0.5;
  run.rounds = {{.round = 0}, {.round = 1, .scores = Scores{.accuracy = 0.25}}};
  EXPECT_THAT(report_page({run}), Not(HasSubstr("Accuracy over rounds")));
  run.rounds.push_back({.round = 2, .scores = Scores{.accuracy = 0.5}});
  EXPECT_THAT(report_page({run}), HasSubstr("Accuracy over rounds"));
}

TEST(Page, FoldsTheDetailsOfManyRuns) {
  EXPECT_EQ(occurrences(report_page(std::vector<RunFolder>(3)), " open>"), 3u);
  EXPECT_EQ(occurrences(report_page(std::vector<RunFolder>(4)), " open>"), 0u);
}

TEST(Page, OrdersClientsByNumber) {
  RunFolder run;
  for (const uint32_t client : {10, 2}) run.clients.push_back({.round = 1, .client = client});
  const std::string page = report_page({run});
  const size_t two = page.find("<th scope=\"row\">2<");
  EXPECT_NE(two, std::string::npos);
  EXPECT_LT(two, page.find("<th scope=\"row\">10<"));
}

TEST(Page, DoesNotCountThePreparationAsARound) {
  RunFolder run;
  run.clients = {{.round = 0, .client = 0, .samples = 3}, {.round = 1, .client = 0, .samples = 3}};
  run.rounds = {{.round = 0}, {.round = 1}};
  EXPECT_THAT(report_page({run}), Not(HasSubstr("rounds</th>")));
  run.clients.push_back({.round = 2, .client = 0, .samples = 3});
  run.rounds.push_back({.round = 2});
  EXPECT_THAT(report_page({run}), HasSubstr("rounds</th>"));
  EXPECT_THAT(report_page({run}), HasSubstr("<td>2</td>"));
}

TEST(Page, ExplainsPicturesOfClausesAlone) {
  RunFolder run = hostile_run();
  EXPECT_THAT(report_page({run}), HasSubstr("where in the image the patch may lie"));
  run.machines[0].shape = {.height = 1, .width = 1, .planes = 9, .patch_height = 1, .patch_width = 1};
  run.machines[0].actions = BitMatrix(2, run.machines[0].shape.literals());
  run.machines[0].actions.set(0, 3, true);
  EXPECT_THAT(report_page({run}), HasSubstr("Strongest clauses"));
  EXPECT_THAT(report_page({run}), Not(HasSubstr("where in the image the patch may lie")));
}

TEST(Page, MarksReusedUploads) {
  RunFolder run;
  run.clients = {{.round = 1, .client = 0, .origin = Origin::kTrained},
                 {.round = 1, .client = 1, .origin = Origin::kCheckpoint}};
  EXPECT_EQ(occurrences(report_page({run}), "reused from an earlier run"), 0u);
  run.clients.push_back({.round = 1, .client = 2, .origin = Origin::kReused});
  EXPECT_EQ(occurrences(report_page({run}), "reused from an earlier run"), 1u);
}

}  // namespace
}  // namespace bitfed
