#include "bitfed/report/charts/charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "bitfed/report/charts/partition_picture.h"
#include "tests/report/xml_check.h"

namespace bitfed {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// The plot is 414 wide from x = 50 and 236 high from y = 14.
TEST(LineChart, PlacesPoints) {
  const std::string svg = line_chart({"t", "round", {{"run", {{1, 0.0}, {2, 0.5}, {3, 1.0}}}}});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr(R"(points="50,250 257,132 464,14")"));
  EXPECT_EQ(occurrences(svg, "<circle"), 3u);
  EXPECT_THAT(svg, HasSubstr(">100 %<"));
  EXPECT_THAT(svg, HasSubstr(">100.00 %<"));  // the last value, in the legend
}

TEST(LineChart, PassesOverWhatWasNotMeasured) {
  const std::string svg = line_chart({"t", "round", {{"run", {{1, 0.0}, {2, kNotMeasured}, {3, 1.0}}}}});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr(R"(points="50,250 464,14")"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(LineChart, OnePointLiesInTheMiddle) {
  const std::string svg = line_chart({"t", "round", {{"run", {{1, 0.8}}}}});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr(R"(<circle cx="257")"));
  EXPECT_THAT(svg, Not(HasSubstr("<polyline")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(LineChart, SaysWhenThereIsNothing) {
  for (const LineChart& chart : {LineChart{"t", "round", {}}, LineChart{"t", "round", {{"run", {}}}},
                                 LineChart{"t", "round", {{"run", {{1, kNotMeasured}}}}}}) {
    const std::string svg = line_chart(chart);
    EXPECT_EQ(xml_fault(svg), "");
    EXPECT_THAT(svg, HasSubstr("no accuracy was measured"));
  }
}

TEST(LineChart, TellsManyRunsApart) {
  LineChart chart{"t", "round", {}};
  for (int i = 0; i < 8; ++i)
    chart.series.push_back({"run <" + std::to_string(i) + ">", {{1, 0.1 * i}, {2, 0.9}}});
  const std::string svg = line_chart(chart);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(occurrences(svg, "stroke-dasharray"), 4u);  // the lines and legends of the seventh and eighth
}

TEST(LineChart, FlatAtTheBounds) {
  for (const double value : {0.0, 1.0, 0.4142}) {
    const std::string svg = line_chart({"t", "round", {{"run", {{1, value}, {2, value}}}}});
    EXPECT_EQ(xml_fault(svg), "");
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

// Labels of 1 character and texts of 1: 6.8 + 12 to the left, 6.8 + 14 to the right leave 420.4 of 460.
TEST(BarChart, ScalesToTheLargest) {
  const std::string svg = bar_chart("t", {{"a", 2, "2", "two"}, {"b", 1, "1", "one"}});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr(R"(<rect x="18.8" y="11" width="420.4" height="16" class="f-series-1")"));
  EXPECT_THAT(svg, HasSubstr(R"(<rect x="18.8" y="41" width="210.2" height="16" class="f-series-1")"));
}

TEST(BarChart, EdgeCases) {
  EXPECT_THAT(bar_chart("t", {}), HasSubstr("nothing was measured"));
  for (const double value : {0.0, -1.0, kNotMeasured, 1e300}) {
    const std::string svg = bar_chart("t", {{"<label>", value, "text", ""}});
    EXPECT_EQ(xml_fault(svg), "");
    EXPECT_THAT(svg, Not(HasSubstr("width=\"-")));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
  }
}

TEST(PartitionPicture, ShadesByTheRootOfTheShare) {
  // Client 0 has 4 of class 0; client 1 has 1 of class 0 and 4 of class 1.
  const std::string svg = partition_picture({{4, 0}, {1, 4}}, {"x", "y"}, "t");
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("class x, client 0: 4<"));
  EXPECT_THAT(svg, HasSubstr("class x, client 1: 1<"));
  EXPECT_EQ(occurrences(svg, R"(class="f-accent")"), 3u);
  EXPECT_EQ(occurrences(svg, R"(class="f-accent" fill="#0072b2" fill-opacity="0.5")"), 1u);  // 1 of 4
  EXPECT_THAT(svg, HasSubstr("client 1: 5 in all"));
}

TEST(PartitionPicture, NamesPeople) {
  const std::string svg = partition_picture({{4, 0}, {1, 4}}, {"x", "y"}, "t", {"ann", "<bob>"});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("class x, person ann: 4<"));
  EXPECT_THAT(svg, HasSubstr("class y, person &lt;bob&gt;: 4<"));
}

TEST(PartitionPicture, ZeroCountsAndNone) {
  EXPECT_EQ(xml_fault(partition_picture({{0, 0}, {0, 0}}, {"x", "y"}, "t")), "");
  EXPECT_EQ(xml_fault(partition_picture({}, {}, "t")), "");
  EXPECT_EQ(xml_fault(partition_picture({{}}, {}, "t")), "");
  EXPECT_EQ(occurrences(partition_picture({{0, 0}}, {}, "t"), "f-accent"), 0u);
}

TEST(PartitionPicture, ManyClientsAndClasses) {
  for (const size_t clients : {10, 100, 1000}) {
    for (const size_t classes : {2, 10, 100}) {
      std::vector<std::vector<uint32_t>> counts(clients, std::vector<uint32_t>(classes, 7));
      const std::string svg = partition_picture(counts, {}, "t");
      const size_t drawn = std::min<size_t>(clients, 300);
      EXPECT_EQ(occurrences(svg, R"(class="f-accent")"), drawn * classes);
      EXPECT_EQ(svg.find("first 300 of 1000") != std::string::npos, clients == 1000);
    }
  }
}

TEST(ConfusionPicture, SetsMistakesApart) {
  const std::string svg = confusion_picture({{3, 1}, {0, 4}}, {"cat & dog", "<b>"}, "t");
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(occurrences(svg, R"(class="f-accent")"), 2u);
  EXPECT_EQ(occurrences(svg, R"(class="f-contrast" fill="#d55e00" fill-opacity="0.5")"), 1u);  // root of 1/4
  EXPECT_THAT(svg, HasSubstr("true cat &amp; dog, predicted &lt;b&gt;: 1<"));
}

}  // namespace
}  // namespace bitfed
