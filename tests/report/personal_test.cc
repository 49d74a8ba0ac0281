#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/page.h"
#include "bitfed/report/pages/personal_pictures.h"
#include "bitfed/report/pages/personal_results.h"
#include "tests/report/xml_check.h"

namespace bitfed {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ClientAccuracy outcome(uint64_t client, double global, double own) {
  return {client, "p" + std::to_string(client), 10, 4, global, own};
}

ClientAccuracy without_test_rows(uint64_t client) {
  return {client, "p" + std::to_string(client), 10, 0, std::nullopt, std::nullopt};
}

std::vector<uint64_t> numbers(const std::vector<ClientAccuracy>& clients) {
  std::vector<uint64_t> numbers;
  for (const ClientAccuracy& client : clients) numbers.push_back(client.client);
  return numbers;
}

RunFolder personal_run() {
  RunFolder run;
  RunSummary& s = run.summary;
  s.name = "personal";
  s.accuracy = 0.625;
  s.local_accuracy_mean = 0.75;
  s.rounds = 2;
  s.class_names = {"sit", "walk"};
  s.client_class_counts = {{8, 2}, {0, 10}, {5, 5}, {10, 0}};
  s.client_results = {outcome(0, 0.5, 0.75), outcome(1, 0.75, 0.5), outcome(2, 0.75, 1.0),
                      without_test_rows(3)};
  s.upload_bytes_per_client = 15500;
  s.download_bytes_per_client = 15600;
  s.airtime = {{300, 413.333, 416}, {37500, 3.30667, 3.328}};
  run.rounds = {{.round = 1, .scores = Scores{.accuracy = 0.5, .local_accuracy_mean = 0.25}},
                {.round = 2, .scores = Scores{.accuracy = 0.625, .local_accuracy_mean = 0.75}}};
  return run;
}

TEST(PersonalResults, NamesClients) {
  EXPECT_EQ(client_label({.client = 3, .name = "7"}), "person 7");
  EXPECT_EQ(client_label({.client = 3, .name = "ward b"}), "ward b");
  EXPECT_EQ(client_label({.client = 3}), "client 3");
}

TEST(PersonalResults, KnowsThePeopleOfTheClients) {
  RunSummary summary = personal_run().summary;
  EXPECT_THAT(people_of(summary), ElementsAre("p0", "p1", "p2", "p3"));
  summary.client_results[2].name.reset();
  EXPECT_THAT(people_of(summary), IsEmpty());
  summary.client_results.pop_back();
  EXPECT_THAT(people_of(summary), IsEmpty());
}

TEST(PersonalResults, SortsByGain) {
  const std::vector<ClientAccuracy> results = {outcome(0, 0.5, 0.5), outcome(1, 0.5, 0.75),
                                               without_test_rows(2), outcome(3, 0.75, 0.5),
                                               outcome(4, 0.25, 0.5)};
  EXPECT_THAT(numbers(by_gain(results)), ElementsAre(1, 4, 0, 3));
  EXPECT_THAT(by_gain({without_test_rows(0)}), IsEmpty());
}

TEST(PersonalResults, ChoosesTheBestTheWorstAndTwoBetween) {
  std::vector<ClientAccuracy> results;
  for (uint64_t i = 0; i < 10; ++i) results.push_back(outcome(i, 0.5, 0.05 * static_cast<double>(i)));
  results.push_back(without_test_rows(10));
  EXPECT_THAT(numbers(chosen_clients(results)), ElementsAre(9, 6, 3, 0));
  results.erase(results.begin() + 5, results.begin() + 10);  // 0 to 4 are left
  EXPECT_THAT(numbers(chosen_clients(results)), ElementsAre(4, 3, 1, 0));
  results.resize(2);
  EXPECT_THAT(numbers(chosen_clients(results)), ElementsAre(1, 0));
  EXPECT_THAT(chosen_clients({}), IsEmpty());
}

// Labels of two characters leave 25.2 to the left, notes of six 57.6 to the right: the plot ends at 462.4.
TEST(PersonalPictures, JoinsTheTwoAccuracies) {
  const std::string svg = gains_picture({outcome(1, 0.5, 1.0), outcome(2, 0.75, 0.75)});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("p1, global model: 50.00 %<"));
  EXPECT_THAT(svg, HasSubstr("p1, own model: 100.00 %<"));
  EXPECT_THAT(svg, HasSubstr(">+50.00<"));
  EXPECT_THAT(svg, HasSubstr(">0.00<"));
  EXPECT_THAT(svg, HasSubstr(R"(<circle cx="25.2")"));
  EXPECT_THAT(svg, HasSubstr(R"(<circle cx="462.4")"));
  EXPECT_EQ(occurrences(svg, "stroke-width=\"2.5\""), 1u);  // no line between equal ones
}

// "global model" leaves 78.8 to the left; 250 - 78.8 - 50 = 121.2 are a bar of full length.
TEST(PersonalPictures, DrawsAClientWithItsClasses) {
  const std::string svg = client_picture({outcome(1, 0.5, 0.75), {10, 5}, {"sit <&>"}, 20});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("width=\"60.6\" height=\"10\" class=\"f-series-1\""));
  EXPECT_THAT(svg, HasSubstr("width=\"90.9\" height=\"10\" class=\"f-series-2\""));
  EXPECT_THAT(svg, HasSubstr("sit &lt;&amp;&gt;: 10 of 15 samples"));
  EXPECT_THAT(svg, HasSubstr("class 1: 5 of 15 samples"));
}

TEST(PersonalPictures, LeavesOutWhatAClientHasNot) {
  for (const ClientPicture& picture :
       {ClientPicture{without_test_rows(1), {}, {}, 0}, ClientPicture{without_test_rows(1), {0, 0}, {}, 0}}) {
    const std::string svg = client_picture(picture);
    EXPECT_EQ(xml_fault(svg), "");
    EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), HasSubstr("own model: not measured")));
  }
  const std::string svg = client_picture({outcome(1, 1, 1), std::vector<uint32_t>(100, 1), {}, 1});
  EXPECT_THAT(svg, HasSubstr("and 76 more classes"));
}

TEST(PersonalPage, ShowsEveryone) {
  const std::string page = report_page({personal_run()});
  const size_t begin = page.find("<body>");
  EXPECT_EQ(xml_fault(page.substr(begin, page.find("</html>") - begin)), "");
  EXPECT_THAT(page, HasSubstr("mean over 3 people"));
  EXPECT_THAT(page, HasSubstr("own models, mean"));
  EXPECT_THAT(page, HasSubstr("For 2 of 3 people the own model is the better one, for 1 the global model."));
  EXPECT_THAT(page, HasSubstr("class=\"better\">+25.00<"));
  EXPECT_THAT(page, HasSubstr("class=\"worse\">-25.00<"));
  EXPECT_EQ(occurrences(page, "no test rows"), 1u);
  EXPECT_THAT(page, HasSubstr("all who have one and test rows"));
  EXPECT_THAT(page, HasSubstr("Chosen devices"));
  EXPECT_THAT(page, HasSubstr("class walk, person p1: 10<"));
}

TEST(PersonalPage, SaysWhatTheRadioTakes) {
  RunFolder run = personal_run();
  const std::string page = report_page({run});
  EXPECT_THAT(page, HasSubstr("at 37.5 kbit/s"));
  EXPECT_THAT(page, HasSubstr(">6 min 53 s<"));
  EXPECT_THAT(page, HasSubstr("All 2 rounds<"));
  EXPECT_THAT(page, HasSubstr(">13 min 47 s<"));
  run.summary.rounds = 1;
  EXPECT_THAT(report_page({run}), AllOf(HasSubstr("Over a slow radio"), Not(HasSubstr("All 1 rounds"))));
  run.summary.upload_bytes_per_client = 1'000'000;
  EXPECT_THAT(report_page({run}), Not(HasSubstr("Over a slow radio")));
}

TEST(PersonalPage, ShowsTheEndsOfManyRows) {
  RunFolder run = personal_run();
  run.summary.client_results.clear();
  for (uint64_t i = 0; i < 61; ++i)
    run.summary.client_results.push_back(outcome(i, 0.5, 0.01 * static_cast<double>(i)));
  const std::string page = report_page({run});
  EXPECT_THAT(page, HasSubstr("the 30 who gain most and the 30 who gain least"));
  EXPECT_THAT(page, HasSubstr("a third and two thirds of the way down the list"));
  EXPECT_THAT(page, Not(HasSubstr("p30, own model")));
  EXPECT_THAT(page, AllOf(HasSubstr("p29, own model"), HasSubstr("p31, own model")));
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A page does not grow with the clients of a large federation.
TEST(PersonalPage, ShowsTheFirstOfManyThousands) {
  const auto page_of = [](uint32_t clients) {
    RunFolder run = personal_run();
    run.summary.client_results.clear();
    run.summary.client_class_counts.assign(clients, {1, 1});
    for (uint32_t i = 0; i < clients; ++i) {
      run.summary.client_results.push_back(outcome(i, 0.5, 0.75));
      run.clients.push_back({.round = 1, .client = i, .samples = 2});
    }
    return report_page({run});
  };
  const std::string some = page_of(1000);
  const std::string many = page_of(5000);
  EXPECT_EQ(count_of(some, "<tr>"), count_of(many, "<tr>"));
  EXPECT_THAT(many, HasSubstr("The first 500 of 5,000"));
  EXPECT_THAT(page_of(500), Not(HasSubstr("The first")));
}

TEST(Humanise, RatesAndDifferences) {
  EXPECT_EQ(human_bit_rate(300), "300 bit/s");
  EXPECT_EQ(human_bit_rate(37500), "37.5 kbit/s");
  EXPECT_EQ(signed_points(0.0412), "+4.12");
  EXPECT_EQ(signed_points(-0.005), "-0.50");
  EXPECT_EQ(signed_points(-0.00001), "0.00");
}

}  // namespace
}  // namespace bitfed
