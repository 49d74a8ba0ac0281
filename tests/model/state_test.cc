#include "bitfed/model/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Bytes bytes_of(std::string_view text) {
  return Bytes(text.begin(), text.end());
}

// A file with this header and this data, whatever they say.
Bytes file_of(std::string_view header, std::string_view data) {
  std::string text(8, '\0');
  for (size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
  text.append(header).append(data);
  return bytes_of(text);
}

std::string refusal(const Bytes& bytes) {
  const std::string text = error_text([&] { decode(bytes, "upload 3"); });
  EXPECT_THAT(text, HasSubstr("upload 3"));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  return text;
}

std::string refusal(std::string_view header, std::string_view data) {
  return refusal(file_of(header, data));
}

State small_state() {
  State state;
  state.add("b", {2}, std::vector<uint8_t>{7, 8});
  state.add_scalar("a", int32_t{-2});
  state.metadata["k"] = "v";
  return state;
}

State every_dtype() {
  State state;
  state.add("u8", {2}, std::vector<uint8_t>{0, 255});
  state.add("i8", {2}, std::vector<int8_t>{-128, 127});
  state.add("u16", {1, 2}, std::vector<uint16_t>{0, 65535});
  state.add("i16", {2, 1}, std::vector<int16_t>{-32768, 32767});
  state.add("u32", {1}, std::vector<uint32_t>{4294967295u});
  state.add("i32", {3}, std::vector<int32_t>{INT32_MIN, 0, INT32_MAX});
  state.add("u64", {1}, std::vector<uint64_t>{UINT64_MAX});
  state.add("i64", {1}, std::vector<int64_t>{INT64_MIN});
  state.add("f32", {2, 2}, std::vector<float>{1.5f, -0.0f, 1e-40f, std::numeric_limits<float>::infinity()});
  state.add(Tensor{"bf16", Dtype::kBF16, {2}, {0x80, 0x3f, 0x00, 0xc0}});
  state.add("f64", {1}, std::vector<double>{0.1});
  return state;
}

TEST(State, RoundTripOfEveryDtype) {
  const State state = every_dtype();
  const State back = decode(encode(state), "file");
  EXPECT_EQ(back, state);
  EXPECT_EQ(back.sha256(), state.sha256());
  EXPECT_THAT(back.values<uint8_t>("u8", {2}), ElementsAre(0, 255));
  EXPECT_THAT(back.values<int8_t>("i8", {2}), ElementsAre(-128, 127));
  EXPECT_THAT(back.values<uint16_t>("u16", {1, 2}), ElementsAre(0, 65535));
  EXPECT_THAT(back.values<int16_t>("i16", {2, 1}), ElementsAre(-32768, 32767));
  EXPECT_THAT(back.values<uint32_t>("u32", {1}), ElementsAre(4294967295u));
  EXPECT_THAT(back.values<int32_t>("i32", {3}), ElementsAre(INT32_MIN, 0, INT32_MAX));
  EXPECT_THAT(back.values<uint64_t>("u64", {1}), ElementsAre(UINT64_MAX));
  EXPECT_THAT(back.values<int64_t>("i64", {1}), ElementsAre(INT64_MIN));
  const std::vector<float> floats = back.values<float>("f32", {2, 2});
  EXPECT_EQ(floats[0], 1.5f);
  EXPECT_TRUE(std::signbit(floats[1]));
  EXPECT_EQ(floats[2], 1e-40f);
  EXPECT_EQ(floats[3], std::numeric_limits<float>::infinity());
  EXPECT_THAT(back.values<double>("f64", {1}), ElementsAre(0.1));
  EXPECT_EQ(back.tensors()[9].dtype, Dtype::kBF16);
  EXPECT_EQ(back.tensors()[9].elements(), 2u);
}

TEST(State, DtypesHaveTheirNamesAndSizes) {
  const std::vector<std::pair<std::string, size_t>> expected = {
      {"U8", 1},  {"I8", 1},  {"U16", 2}, {"I16", 2},  {"U32", 4}, {"I32", 4},
      {"U64", 8}, {"I64", 8}, {"F32", 4}, {"BF16", 2}, {"F64", 8}};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(dtype_name(static_cast<Dtype>(i)), expected[i].first);
    EXPECT_EQ(dtype_size(static_cast<Dtype>(i)), expected[i].second);
  }
}

TEST(State, KeepsOrderEmptyTensorsScalarsAndTexts) {
  State state;
  state.add("z", {1}, std::vector<uint8_t>{1});
  state.add("empty y", {0, 3}, std::vector<float>{});
  state.add("empty x", {2, 0}, std::vector<int32_t>{});
  state.add_scalar("a", 2.5f);
  state.add("empty b", {0}, std::vector<uint8_t>{});
  state.add("empty a", {0}, std::vector<uint8_t>{});
  state.metadata = {{"name", "größe \"quoted\" \\ \n"}, {"", "empty key"}, {"empty value", ""}};
  const State back = decode(encode(state), "file");
  EXPECT_EQ(back, state);
  ASSERT_EQ(back.tensors().size(), 6u);
  EXPECT_EQ(back.tensors()[1].name, "empty y");
  EXPECT_EQ(back.tensors()[2].name, "empty x");
  EXPECT_EQ(back.tensors()[4].name, "empty b");
  EXPECT_EQ(back.sha256(), state.sha256());
  EXPECT_EQ(back.scalar<float>("a"), 2.5f);
  EXPECT_THAT(back.values<float>("empty y", {0, 3}), IsEmpty());
  EXPECT_EQ(back.text("name"), "größe \"quoted\" \\ \n");
  EXPECT_EQ(back.tensor_bytes(), 5u);
}

// It is written by hand: as the JSON library would.
TEST(State, TheHeaderIsCompactJson) {
  State state;
  state.metadata = {{"a", "größe \"quoted\" \\ \n\x7f"}, {"b", ""}};
  state.add("plain [name] {}", {2, 1}, std::vector<uint16_t>{1, 2});
  state.add("\t\"", {}, std::vector<float>{1});
  const Bytes bytes = encode(state);
  const std::string text(bytes.begin() + 8, bytes.begin() + 8 + bytes[0] + 256 * bytes[1]);
  const auto header = nlohmann::ordered_json::parse(text);
  EXPECT_EQ(header["__metadata__"]["a"], state.metadata["a"]);
  EXPECT_EQ(header["\t\""]["data_offsets"], nlohmann::json({4, 8}));
  const std::string dumped = header.dump();
  EXPECT_EQ(text.substr(0, dumped.size()), dumped);
  EXPECT_EQ(text.find_first_not_of(' ', dumped.size()), std::string::npos);
}

TEST(State, NothingAtAllIsAState) {
  const State back = decode(encode(State()), "file");
  EXPECT_TRUE(back.empty());
  EXPECT_EQ(back, State());
  EXPECT_EQ(encode(State()), file_of("{}      ", ""));
  State told;
  told.metadata["k"] = "v";
  EXPECT_FALSE(told.empty());
  EXPECT_EQ(decode(encode(told), "file").metadata, told.metadata);
}

// The layout of safetensors: the header's length in eight bytes, little endian; the header, JSON padded with
// spaces; the data, one tensor after the other.
TEST(State, ExactBytes) {
  std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                       R"("a":{"dtype":"I32","shape":[],"data_offsets":[2,6]}})";
  ASSERT_EQ(header.size(), 130u);
  header += std::string(6, ' ');
  using namespace std::string_literals;
  const Bytes expected = bytes_of("\x88\0\0\0\0\0\0\0"s + header + "\x07\x08\xfe\xff\xff\xff"s);
  EXPECT_EQ(encode(small_state()), expected);
  for (const State& state : {small_state(), every_dtype(), State()})
    EXPECT_EQ(encoded_size(state), encode(state).size());
  EXPECT_EQ(decode(expected, "file"), small_state());
}

TEST(State, DigestIsOfNamesTypesShapesAndValuesNotOfTexts) {
  const std::string digest = small_state().sha256();
  // sha256 of: "b" U8 [2] 07 08 "a" I32 [] fe ff ff ff, without the spaces, by sha256sum.
  EXPECT_EQ(digest, "8ad8cf7401aedacd97232a5b3167bc441d7bcd53dcf0ac54cb2468e1e27c750a");
  State told = small_state();
  told.metadata["other"] = "text";
  EXPECT_EQ(told.sha256(), digest);
  const auto digest_of = [](const std::string& name, Dtype dtype, const std::vector<uint64_t>& shape,
                            const Bytes& values) {
    State state;
    state.add(Tensor{name, dtype, shape, values});
    return state.sha256();
  };
  const std::vector<std::string> digests = {
      digest_of("b", Dtype::kU8, {4}, {1, 2, 3, 4}),    digest_of("c", Dtype::kU8, {4}, {1, 2, 3, 4}),
      digest_of("b", Dtype::kI8, {4}, {1, 2, 3, 4}),    digest_of("b", Dtype::kU8, {2, 2}, {1, 2, 3, 4}),
      digest_of("b", Dtype::kU8, {1, 4}, {1, 2, 3, 4}), digest_of("b", Dtype::kU16, {2}, {1, 2, 3, 4}),
      digest_of("b", Dtype::kU8, {4}, {1, 2, 3, 5})};
  for (size_t i = 0; i < digests.size(); ++i) {
    for (size_t k = 0; k < i; ++k) EXPECT_NE(digests[i], digests[k]) << i << " and " << k;
  }
  State one_order = every_dtype();
  State other_order;
  for (auto tensor = one_order.tensors().rbegin(); tensor != one_order.tensors().rend(); ++tensor) {
    other_order.add(*tensor);
  }
  EXPECT_NE(one_order.sha256(), other_order.sha256());
}

TEST(State, RefusesEveryTruncation) {
  State state = every_dtype();
  state.metadata["k"] = "v";
  const Bytes whole = encode(state);
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))), "")
        << "cut to " << length << " of " << whole.size();
  }
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_THAT(refusal(longer), HasSubstr("1 bytes after the last tensor"));
}

// A flipped bit is either noticed or gives another sound state: one that is written as it was read.
TEST(State, EveryBitFlipIsRefusedOrConsistent) {
  const Bytes whole = encode(small_state());
  size_t refused = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes flipped = whole;
    flipped[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    State state;
    try {
      state = decode(flipped, "flipped");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kInput);
      ++refused;
      continue;
    }
    const Bytes again = encode(state);
    const State back = decode(again, "again");
    EXPECT_EQ(back, state) << "bit " << bit;
    EXPECT_EQ(encode(back), again) << "bit " << bit;
    EXPECT_FALSE(state == small_state() && bit / 8 >= whole.size() - 6)
        << "data bit " << bit << " does not matter";
  }
  EXPECT_GT(refused, whole.size() * 4);  // most of the header
  EXPECT_LE(refused, (whole.size() - 6) * 8);
}

TEST(State, RefusesHostileLengths) {
  for (const uint64_t length :
       {uint64_t{9}, uint64_t{1} << 20, (uint64_t{1} << 20) + 1, uint64_t{1} << 63, UINT64_MAX}) {
    Bytes bytes = file_of("", "{}      ");
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_THAT(refusal(bytes),
                HasSubstr("claims a header of " + std::to_string(length) + " bytes, found 16"));
  }
  // A header that is really there, but larger than any of ours.
  EXPECT_THAT(refusal("{}" + std::string(1 << 20, ' '), ""), HasSubstr("claims a header"));
}

TEST(State, RefusesHeadersThatAreNotJsonObjects) {
  for (const char* header :
       {"", "nonsense", "{", "{}{}", "[]", "1", "null", "\"text\"", "{\"a\":}", "{\"\xff\":1}"}) {
    EXPECT_THAT(refusal(header, ""), HasSubstr("not a JSON object")) << header;
  }
}

// As deep as a header may be long: neither parsing it, nor telling about it, nor throwing it away may need
// as much stack.
TEST(State, RefusesDeepNesting) {
  const size_t deep = 500'000;
  const std::string brackets = std::string(deep, '[') + std::string(deep, ']');
  EXPECT_NE(refusal(brackets, ""), "");
  EXPECT_NE(refusal(std::string(1 << 20, '['), ""), "");
  EXPECT_NE(refusal(R"({"a":{"dtype":)" + brackets + R"(,"shape":[],"data_offsets":[0,0]}})", ""), "");
  EXPECT_NE(refusal(R"({"a":{"dtype":"U8","shape":)" + brackets + R"(,"data_offsets":[0,0]}})", ""), "");
  EXPECT_NE(refusal(R"({"__metadata__":{"k":)" + brackets + "}}", ""), "");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(refusal(objects, ""), "");
}

TEST(State, RefusesBadEntries) {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return refusal(
        R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
        "12345678");
  };
  EXPECT_THAT(error_text([] {
                decode(file_of(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", "12345678"), "x");
              }),
              IsEmpty());
  EXPECT_THAT(entry("\"U9\"", "[8]", "[0,8]"), AllOf(HasSubstr("'w'"), HasSubstr("U9"), HasSubstr("F32")));
  EXPECT_THAT(entry("\"u8\"", "[8]", "[0,8]"), HasSubstr("dtype"));
  EXPECT_THAT(entry("\"BOOL\"", "[8]", "[0,8]"), HasSubstr("dtype"));
  EXPECT_THAT(entry("8", "[8]", "[0,8]"), HasSubstr("dtype"));
  EXPECT_THAT(entry("null", "[8]", "[0,8]"), HasSubstr("dtype"));
  for (const char* shape : {"8", "[-8]", "[8.0]", "[\"8\"]", "[null]", "{}", "[1e1]",
                            "[18446744073709551616]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,8]"}) {
    EXPECT_THAT(entry("\"U8\"", shape, "[0,8]"), HasSubstr("tensor 'w': shape is not an array")) << shape;
  }
  for (const char* offsets : {"8", "[-1,7]", "[0,8.0]", "[\"0\",8]", "{}"}) {
    EXPECT_THAT(entry("\"U8\"", "[8]", offsets), HasSubstr("tensor 'w': data_offsets is not an array"))
        << offsets;
  }
  for (const char* offsets :
       {"[]", "[8]", "[0,8,8]", "[8,0]", "[0,7]", "[0,9]", "[0,18446744073709551615]"}) {
    EXPECT_THAT(entry("\"U8\"", "[8]", offsets), HasSubstr("its data_offsets do not fit U8 [8]")) << offsets;
  }
  EXPECT_THAT(entry("\"U16\"", "[8]", "[0,8]"), HasSubstr("do not fit U16 [8]"));
  // Products that wrap around to what would fit.
  EXPECT_THAT(entry("\"U8\"", "[9223372036854775808,4]", "[0,0]"), HasSubstr("do not fit"));
  EXPECT_THAT(entry("\"U8\"", "[4294967296,4294967296]", "[0,0]"), HasSubstr("do not fit"));
  EXPECT_THAT(entry("\"F64\"", "[2305843009213693953]", "[0,8]"), HasSubstr("do not fit"));
  // Right in itself, but beyond what is there.
  EXPECT_THAT(entry("\"U8\"", "[9]", "[0,9]"), HasSubstr("upload 3"));
  EXPECT_THAT(entry("\"U8\"", "[4611686018427387904]", "[0,4611686018427387904]"), HasSubstr("upload 3"));
  EXPECT_THAT(entry("\"U8\"", "[4]", "[18446744073709551611,18446744073709551615]"), HasSubstr("begins at"));
  EXPECT_THAT(entry("\"U8\"", "[4]", "[4,8]"), HasSubstr("begins at 4, expected 0"));
  EXPECT_THAT(entry("\"U8\"", "[4]", "[0,4]"), HasSubstr("4 bytes after the last tensor"));
  EXPECT_NE(refusal(R"({"w":{"dtype":"U8","shape":[8]}})", "12345678"), "");
  EXPECT_NE(refusal(R"({"w":{"dtype":"U8","data_offsets":[0,8]}})", "12345678"), "");
  EXPECT_NE(refusal(R"({"w":{"shape":[8],"data_offsets":[0,8]}})", "12345678"), "");
  EXPECT_THAT(refusal(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"more":1}})", "12345678"),
              HasSubstr("and nothing else"));
  EXPECT_THAT(refusal(R"({"w":[]})", ""), HasSubstr("tensor 'w'"));
}

TEST(State, RefusesTensorsThatOverlapOrLeaveGaps) {
  const auto two = [](const std::string& first, const std::string& second) {
    return refusal(R"({"v":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
                       R"(},"w":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                   "12345678");
  };
  EXPECT_THAT(two("[0,4]", "[0,4]"), HasSubstr("tensor 'w': its data begins at 0, expected 4"));
  EXPECT_THAT(two("[0,4]", "[3,7]"), HasSubstr("tensor 'w': its data begins at 3, expected 4"));
  EXPECT_THAT(two("[0,4]", "[5,9]"), HasSubstr("tensor 'w': its data begins at 5, expected 4"));
  EXPECT_THAT(two("[5,9]", "[0,4]"), HasSubstr("tensor 'v': its data begins at 5, expected 4"));
  // In any order in the header, that of the data counts.
  const State state = decode(file_of(R"({"v":{"dtype":"U8","shape":[4],"data_offsets":[4,8]},)"
                                     R"("w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                                     "12345678"),
                             "file");
  EXPECT_EQ(state.tensors()[0].name, "w");
  EXPECT_EQ(state.tensors()[0].bytes, bytes_of("1234"));
}

// A JSON library keeps the last of several; others keep the first, and see another model.
TEST(State, RefusesNamesThatOccurTwice) {
  const std::string entry = R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  EXPECT_THAT(refusal(R"({"w":)" + entry + R"(,"w":)" + entry + "}", "1234"), HasSubstr("'w' twice"));
  EXPECT_THAT(refusal(R"({"w":1,"w":)" + entry + "}", "1234"), HasSubstr("tensor 'w': expected dtype"));
  EXPECT_THAT(refusal(R"({"w":)" + entry + R"(,"\u0077":)" + entry + "}", "1234"), HasSubstr("'w' twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"k":"1"},"__metadata__":{"k":"2"}})", ""), HasSubstr("twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"k":"1","k":"2"}})", ""), HasSubstr("'k' twice"));
  EXPECT_THAT(refusal(R"({"w":{"dtype":"I8","dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "1234"),
              HasSubstr("'dtype' twice"));
}

TEST(State, RefusesMetadataThatIsNotTexts) {
  for (const char* metadata : {"1", "[]", "\"text\"", "null"}) {
    EXPECT_THAT(refusal("{\"__metadata__\":" + std::string(metadata) + "}", ""),
                HasSubstr("not an object of strings"));
  }
  for (const char* value : {"1", "[]", "{}", "null", "true"}) {
    EXPECT_THAT(refusal("{\"__metadata__\":{\"k\":" + std::string(value) + "}}", ""),
                HasSubstr("__metadata__ 'k' is not a string"));
  }
}

TEST(State, ErrorsNameSourceTensorFoundAndExpected) {
  const State state = decode(encode(small_state()), "client 4");
  const auto text = [&](const std::string& name, const std::vector<uint64_t>& shape) {
    return error_text([&] { state.values<uint8_t>(name, shape); });
  };
  EXPECT_EQ(text("b", {2}), "");
  EXPECT_EQ(text("b", {State::kAny}), "");
  EXPECT_EQ(text("c", {2}), "client 4: tensor 'c' is missing");
  EXPECT_EQ(text("b", {3}), "client 4: tensor 'b': found U8 [2], expected U8 [3]");
  EXPECT_EQ(text("b", {2, 1}), "client 4: tensor 'b': found U8 [2], expected U8 [2, 1]");
  EXPECT_EQ(text("b", {}), "client 4: tensor 'b': found U8 [2], expected U8 []");
  EXPECT_EQ(text("b", {State::kAny, 5}), "client 4: tensor 'b': found U8 [2], expected U8 [any, 5]");
  EXPECT_EQ(text("a", {}), "client 4: tensor 'a': found I32 [], expected U8 []");
  EXPECT_EQ(error_text([&] { state.scalar<int32_t>("b"); }),
            "client 4: tensor 'b': found U8 [2], expected I32 []");
  EXPECT_EQ(error_text([&] { state.scalar<float>("a"); }),
            "client 4: tensor 'a': found I32 [], expected F32 []");
  EXPECT_EQ(error_text([&] { state.text("version"); }), "client 4: metadata 'version' is missing");
  EXPECT_EQ(state.scalar<int32_t>("a"), -2);
  EXPECT_EQ(state.text("k"), "v");
  EXPECT_TRUE(state.has("a"));
  EXPECT_FALSE(state.has("k"));
  EXPECT_EQ(error_text([] { State().text("k"); }), "state: metadata 'k' is missing");
}

TEST(State, FilesNameThemselvesInErrors) {
  const TemporaryFolder folder;
  write_state(folder / "model", every_dtype());
  EXPECT_EQ(read_state(folder / "model"), every_dtype());
  EXPECT_EQ(folder.entries(), 1u);
  const std::string path = (folder / "model").string();
  EXPECT_EQ(error_text([&] { read_state(folder / "model").text("k"); }), path + ": metadata 'k' is missing");
  EXPECT_THAT(error_text([&] { read_state(folder / "absent"); }), HasSubstr((folder / "absent").string()));
}

}  // namespace
}  // namespace bitfed
