#include "bitfed/model/booleanizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

BooleanizerSpec spec_of(const std::string& kind) {
  BooleanizerSpec spec;
  spec.kind = kind;
  return spec;
}

void expect_round_trip(const BooleanizerSpec& spec, const std::string& text) {
  EXPECT_EQ(booleanizer_to_json(spec), nlohmann::json::parse(text));
  EXPECT_EQ(booleanizer_from_json(nlohmann::json::parse(booleanizer_to_json(spec).dump()), "model"), spec);
}

// The error about a booleanizer that is written like this.
std::string refusal(const std::string& text) {
  const std::string error =
      error_text([&] { booleanizer_from_json(nlohmann::json::parse(text), "model 7"); });
  if (!error.empty()) {
    EXPECT_THAT(error, StartsWith("model 7: "));
  }
  return error;
}

TEST(BooleanizerJson, EveryKindWithItsFieldsAndNoOthers) {
  BooleanizerSpec threshold = spec_of("threshold");
  threshold.level = 0;
  expect_round_trip(threshold, R"({"kind":"threshold","level":0})");
  threshold.level = 255;
  expect_round_trip(threshold, R"({"kind":"threshold","level":255})");

  BooleanizerSpec adaptive = spec_of("adaptive-gaussian");
  adaptive.window = 3;
  adaptive.offset = -255;
  expect_round_trip(adaptive, R"({"kind":"adaptive-gaussian","window":3,"offset":-255})");

  BooleanizerSpec thermometer = spec_of("colour-thermometer");
  thermometer.levels = 254;
  expect_round_trip(thermometer, R"({"kind":"colour-thermometer","levels":254})");

  BooleanizerSpec quantile = spec_of("quantile");
  quantile.bins = 3;
  quantile.cuts = {{-1.5f, 0.1f}, {}, {3e38f}};
  const nlohmann::json json = booleanizer_to_json(quantile);
  EXPECT_EQ(json.size(), 3u);
  EXPECT_EQ(json["cuts"][0][0], -1.5);
  // Through text and back to the very same floats.
  EXPECT_EQ(booleanizer_from_json(nlohmann::json::parse(json.dump()), "model"), quantile);
}

TEST(BooleanizerJson, RefusesEveryBadKind) {
  EXPECT_THAT(refusal("{}"), HasSubstr("'kind' is missing"));
  for (const char* other : {"[]", "1", "null", "\"threshold\""})
    EXPECT_THAT(refusal(other), HasSubstr("'kind'"));
  EXPECT_THAT(refusal(R"({"kind":1})"), HasSubstr("expected a string"));
  EXPECT_THAT(refusal(R"({"kind":"Threshold","level":75})"),
              AllOf(HasSubstr("found 'Threshold'"), HasSubstr("'kind'")));
  EXPECT_NE(refusal(R"({"kind":""})"), "");
}

TEST(BooleanizerJson, RefusesEveryBadNumber) {
  struct Field {
    std::string before;  // the text up to the number
    std::string name;
    int least;
    int most;
  };
  const std::vector<Field> fields = {
      {R"({"kind":"threshold","level":)", "level", 0, 255},
      {R"({"kind":"adaptive-gaussian","offset":2,"window":)", "window", 3, 255},
      {R"({"kind":"adaptive-gaussian","window":11,"offset":)", "offset", -255, 255},
      {R"({"kind":"colour-thermometer","levels":)", "levels", 1, 254},
      {R"({"kind":"quantile","cuts":[[1]],"bins":)", "bins", 2, 4096},
  };
  for (const Field& field : fields) {
    EXPECT_EQ(refusal(field.before + std::to_string(field.least) + "}"), "");
    EXPECT_EQ(refusal(field.before + std::to_string(field.most) + "}"), "");
    const std::string range = "from " + std::to_string(field.least) + " to " + std::to_string(field.most);
    // The last ones are whole numbers that wrap around into the range, where cut to 64 or 32 bits.
    for (const std::string& value :
         {std::to_string(field.least - 1), std::to_string(field.most + 1), std::string("5.0"),
          std::string("\"5\""), std::string("null"), std::string("true"), std::string("[5]"),
          std::string("1e1"), std::string("18446744073709551615"), std::string("4294967301"),
          std::string("-4294967291")}) {
      EXPECT_THAT(refusal(field.before + value + "}"),
                  AllOf(HasSubstr("'" + field.name + "'"), HasSubstr(range)))
          << field.before << value;
    }
    const std::string without = field.before.substr(0, field.before.rfind(','));
    EXPECT_THAT(refusal(without + "}"), HasSubstr("'" + field.name + "' is missing"));
  }
  EXPECT_THAT(refusal(R"({"kind":"adaptive-gaussian","window":12,"offset":2})"),
              HasSubstr("expected an odd number"));
}

TEST(BooleanizerJson, RefusesEveryBadCut) {
  const auto cuts = [](const std::string& text) {
    return refusal(R"({"kind":"quantile","bins":4,"cuts":)" + text + "}");
  };
  EXPECT_EQ(cuts("[[1, 2.5, 3]]"), "");
  EXPECT_EQ(cuts("[[]]"), "");
  for (const char* bad : {"[]", "{}", "1", "null", "[1]", "[[\"1\"]]", "[[null]]", "[[2, 1]]", "[[1, 1]]",
                          "[[1e39]]", "[[-1e39]]", "[[[1]]]", "[{}]"}) {
    EXPECT_THAT(cuts(bad), HasSubstr("field 'cuts': expected an array of ascending numbers")) << bad;
  }
  EXPECT_THAT(refusal(R"({"kind":"quantile","bins":4})"), HasSubstr("'cuts' is missing"));
  std::string many = "[[0";
  for (int i = 1; i < 4096; ++i) many += "," + std::to_string(i);
  EXPECT_EQ(cuts(many + "]]"), "");
  EXPECT_NE(cuts(many + ",4096]]"), "");
}

}  // namespace
}  // namespace bitfed
