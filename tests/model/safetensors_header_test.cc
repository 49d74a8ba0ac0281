#include "bitfed/model/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/base/counted_allocations.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

constexpr const char* kEntry = R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})";

SafetensorsHeader parse(std::string_view text) {
  return parse_safetensors_header(text, "file");
}

std::string refusal(const std::string& text) {
  const std::string error = error_text([&] { parse(text); });
  EXPECT_THAT(error, HasSubstr("file: "));
  EXPECT_THAT(error, Not(HasSubstr("\n")));
  return error;
}

// {"NAME": an entry}, with the name between quotes as given.
std::string named(const std::string& name) {
  return "{\"" + name + "\":" + kEntry + "}";
}

std::string name_in(const std::string& text) {
  return parse(text).tensors.at(0).name;
}

TEST(SafetensorsHeader, TensorsAndMetadata) {
  const SafetensorsHeader header = parse(
      R"({"b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"__metadata__":{"format":"pt","":""},)"
      R"("a":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})");
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "b");
  EXPECT_EQ(header.tensors[0].dtype, "F32");
  EXPECT_THAT(header.tensors[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(header.tensors[0].data_offsets, ElementsAre(0, 24));
  EXPECT_EQ(header.tensors[1].name, "a");
  EXPECT_THAT(header.tensors[1].shape, IsEmpty());
  EXPECT_THAT(header.metadata, ElementsAre(Pair("", ""), Pair("format", "pt")));
  EXPECT_THAT(parse("{}").tensors, IsEmpty());
  EXPECT_THAT(parse(R"({"__metadata__":{}})").metadata, IsEmpty());
}

// What other writers do: spaces after commas and colons (Python), padding at the end, fields in any order.
TEST(SafetensorsHeader, WhitespaceAndOrderAreFree) {
  const std::string text =
      " {\r\n\t\"w\" : { \"shape\" : [ 2 , 3 ] ,\n\"data_offsets\":[0 ,24], \"dtype\" :\"F32\" } }   \n";
  EXPECT_EQ(name_in(text), "w");
  EXPECT_THAT(parse(text).tensors[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(parse("{ }").tensors, IsEmpty());
  EXPECT_THAT(parse(R"({"w":{"dtype":"F32","shape":[ ],"data_offsets":[0,24]}})").tensors[0].shape,
              IsEmpty());
}

TEST(SafetensorsHeader, Escapes) {
  EXPECT_EQ(name_in(named(R"(\"\\\/\b\f\n\r\t)")), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(name_in(named(R"(\u0077\u00e9\u20AC\uD83D\ude00)")), "wé€😀");
  EXPECT_EQ(name_in(named(R"(\ud800\udc00\udbff\udfff)")), "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
  EXPECT_EQ(name_in(named(R"(a\u0000b)")), std::string("a\0b", 3));
  for (const char* bad : {R"(\x)", R"(\u12)", R"(\u12g4)", R"(\ud800)", R"(\ud800x)", R"(\ud800\n)",
                          R"(\ud800\u0041)", R"(\udc00)", R"(\ud800\ud800)", "\\", "a\nb", "a\tb", "\x01"}) {
    EXPECT_THAT(refusal(named(bad)), HasSubstr("not a JSON object")) << bad;
  }
}

// The borders of the table in RFC 3629, section 4.
TEST(SafetensorsHeader, Utf8) {
  for (const char* good : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(name_in(named(good)), good);
  }
  for (const char* bad : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x7f", "\xc2\xc0",
                          "\xe0\x9f\xbf", "\xe0\xa0", "\xed\xa0\x80", "\xef\xbf", "\xf0\x8f\xbf\xbf",
                          "\xf0\x90\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_THAT(refusal(named(bad)), HasSubstr("not a JSON object")) << bad;
  }
}

TEST(SafetensorsHeader, SyntaxErrorsNameTheByte) {
  EXPECT_EQ(refusal(R"({"w" 1})"),
            "file: its header is not a JSON object (at byte 5), expected a safetensors file");
  for (const char* text : {"", " ", "{", "{,}", "{\"w\"}", "{\"w\":}", "{\"w\":?}", "{}x", "{}{}", "[]",
                           "null", "\"w\"", "{w:1}", "{'w':1}", "{\"w", "\xef\xbb\xbf{}", "// c\n{}"}) {
    EXPECT_THAT(refusal(text), HasSubstr("not a JSON object")) << text;
  }
  EXPECT_THAT(refusal(std::string("{}\0", 3)), HasSubstr("at byte 2"));
  const std::string whole = named("w");
  for (size_t length = 0; length < whole.size(); ++length) EXPECT_NE(refusal(whole.substr(0, length)), "");
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 1) + ",}"), HasSubstr("not a JSON object"));
  for (const char* shape : {"[2,]", "[,2]", "[2", "[2 3]", "[2}", "[?]"}) {
    EXPECT_THAT(refusal(R"({"w":{"dtype":"U8","data_offsets":[0,2],"shape":)" + std::string(shape) + "}}"),
                HasSubstr("not a JSON object"))
        << shape;
  }
}

TEST(SafetensorsHeader, WholeNumbersOf64Bits) {
  const auto shape = [](const std::string& numbers) {
    return R"({"w":{"dtype":"U8","data_offsets":[0,2],"shape":[)" + numbers + "]}}";
  };
  EXPECT_THAT(parse(shape("0,18446744073709551615")).tensors[0].shape, ElementsAre(0, UINT64_MAX));
  for (const char* bad :
       {"18446744073709551616", "99999999999999999999", "-1", "-0", "01", "00", "1.0", "1e0", "1E2", "1.",
        "\"1\"", "true", "[1]", "{}", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17"}) {
    EXPECT_EQ(refusal(shape(bad)), "file: tensor 'w': shape is not an array of at most 16 whole numbers")
        << bad;
  }
}

TEST(SafetensorsHeader, ErrorsShowNamesOnOneShortLine) {
  EXPECT_EQ(refusal(R"({"a\nb\u007f":1})"),
            "file: tensor 'a?b?': expected dtype, shape and data_offsets and nothing else");
  const std::string long_name(1000, 'x');
  EXPECT_LT(refusal("{\"" + long_name + "\":1}").size(), 200u);
  std::string accents;
  for (int i = 0; i < 200; ++i) accents += "é";
  EXPECT_EQ(printable_name("x" + accents).substr(97), "é…");  // no half of a character
}

// The number of allocations for a header of about a megabyte, refused or not, is at most a few for each of
// its strings. A parser that goes back over what it has read, or copies what it holds, shows in the second
// test.
size_t allocations_of(const std::string& text) {
  const size_t before = allocations;
  error_text([&] { parse(text); });
  return allocations - before;
}

std::string repeated(const std::string& text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += (i > 0 ? "," : "") + text;
  return result;
}

// 100,000 of anything where a header has one value: refused at its first byte, without a look at the rest.
TEST(SafetensorsHeader, HostileValuesAreRefusedAtOnce) {
  for (const char* element : {"{}", "[]", "1", "\"\"", "{\"a\":1}", "null"}) {
    const std::string list = "[" + repeated(element, 100'000) + "]";
    for (const std::string& text : {R"({"a":)" + list + "}", R"({"__metadata__":)" + list + "}",
                                    R"({"__metadata__":{"a":)" + list + "}}",
                                    R"({"a":{"dtype":)" + list + "}}", R"({"a":{"shape":)" + list + "}}"}) {
      EXPECT_NE(refusal(text), "");
      EXPECT_LT(allocations_of(text), 100u) << text.substr(0, 40);
    }
  }
}

TEST(SafetensorsHeader, WorkGrowsWithTheHeader) {
  const auto header = [](size_t tensors) {
    std::string text = "{";
    for (size_t i = 0; i < tensors; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":" + kEntry;
    return text + "}";
  };
  const auto metadata = [](size_t keys) {
    std::string text = R"({"__metadata__":{)";
    for (size_t i = 0; i < keys; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
    return text + "}}";
  };
  EXPECT_LT(allocations_of(header(16000)), 20 * 16000u);
  EXPECT_LT(allocations_of(metadata(80000)), 5 * 80000u);
  EXPECT_LT(allocations_of(named(std::string(1'000'000, 'x'))), 100u);
}

// The general parser agrees with whatever this one accepts.
TEST(SafetensorsHeader, AcceptsWhatJsonAccepts) {
  const std::string whole =
      R"({"__metadata__":{"k":"\u00e9\n"},"wé\ud83d\ude00":{"dtype":"U8","shape":[1,20],"data_offsets":[0,20]} , "b":)" +
      std::string(kEntry) + "}  ";
  size_t accepted = 0;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    SafetensorsHeader header;
    if (!error_text([&] { header = parse(flipped); }).empty()) continue;
    ++accepted;
    const auto json = nlohmann::json::parse(flipped, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(json.is_object()) << flipped;
    for (const TensorEntry& tensor : header.tensors) {
      ASSERT_TRUE(json.contains(tensor.name)) << flipped;
      EXPECT_EQ(json[tensor.name]["dtype"], tensor.dtype);
      EXPECT_EQ(json[tensor.name]["shape"], tensor.shape);
      EXPECT_EQ(json[tensor.name]["data_offsets"], tensor.data_offsets);
    }
    if (json.contains("__metadata__")) {
      EXPECT_EQ(json["__metadata__"], nlohmann::json(header.metadata));
    }
  }
  EXPECT_GT(accepted, 100u);
}

}  // namespace
}  // namespace bitfed
