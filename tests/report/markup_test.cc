#include "bitfed/report/markup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/report/charts/svg.h"
#include "bitfed/report/humanise.h"
#include "tests/report/xml_check.h"

namespace bitfed {
namespace {

using testing::HasSubstr;

TEST(Markup, EscapesTheSpecialCharacters) {
  EXPECT_EQ(escape_markup("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escape_markup("line\n\ttab"), "line\n\ttab");
}

TEST(Markup, ReplacesWhatIsNotText) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(escape_markup(std::string_view("a\0b\x1B", 4)), "a" + replaced + "b" + replaced);
  EXPECT_EQ(escape_markup("Stra\xDF"
                          "e"),
            "Stra" + replaced + "e");  // Latin-1
  EXPECT_EQ(escape_markup("Straße … 日本 😀"), "Straße … 日本 😀");
  EXPECT_EQ(escape_markup("\xC0\xAF"), replaced + replaced);                 // overlong '/'
  EXPECT_EQ(escape_markup("\xED\xA0\x80"), replaced + replaced + replaced);  // a surrogate
  EXPECT_EQ(escape_markup("\xE2\x82"), replaced + replaced);                 // cut short
  EXPECT_EQ(escape_markup("\xEF\xBF\xBF"), replaced);                        // U+FFFF
}

TEST(Markup, CountsAndShortensByCharacters) {
  EXPECT_EQ(character_count("Straße"), 6u);
  EXPECT_EQ(shorten("Straße", 6), "Straße");
  EXPECT_EQ(shorten("Straßen", 6), "Straß…");
  EXPECT_EQ(shorten("", 3), "");
}

TEST(Humanise, Bytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1000), "1.00 KB");
  EXPECT_EQ(human_bytes(48213), "48.2 KB");
  EXPECT_EQ(human_bytes(999600), "1.00 MB");
  EXPECT_EQ(human_bytes(9996), "10.0 KB");
}

TEST(Humanise, Seconds) {
  EXPECT_EQ(human_seconds(0), "0 s");
  EXPECT_EQ(human_seconds(0.00002), "20.0 µs");
  EXPECT_EQ(human_seconds(0.4127), "413 ms");
  EXPECT_EQ(human_seconds(3.4), "3.40 s");
  EXPECT_EQ(human_seconds(125), "2 min 05 s");
  EXPECT_EQ(human_seconds(3 * 3600 + 20 * 60), "3 h 20 min");
}

TEST(Humanise, Numbers) {
  EXPECT_EQ(human_count(950), "950");
  EXPECT_EQ(human_count(12400), "12.4 k");
  EXPECT_EQ(percent(0.8123), "81.23 %");
  EXPECT_EQ(percent(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(exact_count(1234567), "1,234,567");
  EXPECT_EQ(exact_count(999), "999");
  EXPECT_EQ(exact_number(48000), "48000");
  EXPECT_EQ(exact_number(0.8123), "0.8123");
}

TEST(Svg, WritesNumbersShort) {
  EXPECT_EQ(svg_number(3), "3");
  EXPECT_EQ(svg_number(2.5), "2.5");
  EXPECT_EQ(svg_number(1.0 / 3), "0.33");
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(svg_number(100), "100");
}

TEST(Svg, EscapesEveryText) {
  SvgWriter svg(100, 50, "<title>");
  svg.text({1, 2}, "a & b");
  svg.rectangle({0, 0, 1, 1}, kAccent, {.tooltip = "\"<script>\""});
  svg.circle({5, 5}, 2, kAccent, "<b>");
  const std::string text = svg.finish();
  EXPECT_EQ(xml_fault(text), "");
  EXPECT_THAT(text, HasSubstr("&lt;title&gt;"));
  EXPECT_THAT(text, HasSubstr("&quot;&lt;script&gt;&quot;"));
}

TEST(Svg, StandsAloneOnWhite) {
  const std::string text = SvgWriter(100, 50, "t").finish();
  EXPECT_THAT(text,
              HasSubstr(R"(<rect x="0" y="0" width="100" height="50" class="f-surface" fill="#ffffff"/>)"));
}

TEST(XmlCheck, FindsFaults) {
  EXPECT_EQ(xml_fault("<a><b c=\"d\"/>e</a>\n"), "");
  for (const char* bad : {"<a>", "<a></b>", "<a>&</a>", "<a b=c/>", "<a/><a/>", "<a><", "</a>"}) {
    EXPECT_NE(xml_fault(bad), "") << bad;
  }
}

}  // namespace
}  // namespace bitfed
