#include "bitfed/edge/onnx/export_onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/edge/onnx/onnx_graph.h"
#include "tests/base/error_text.h"
#include "tests/edge/some_models.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

// A field of protobuf: a message or text shorter than 128 bytes, and a number below 128.
std::string part(int field, const std::string& content) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(content.size())} + content;
}
std::string number(int field, int value) {
  return {static_cast<char>(field << 3), static_cast<char>(value)};
}

// A graph of one node as onnx.proto and protobuf's encoding have it. Whether runtimes agree with what is
// exported is the slow test's question.
TEST(ExportOnnx, GraphsAreProtobuf) {
  const std::string name(20, 'g');  // the graph is longer than 127 bytes then
  OnnxGraph graph(name);
  const std::string x = graph.input("x", OnnxType::kFloat, {-1, 300});
  graph.output(graph.node("Cast", {x}, {{"to", int64_t{7}}}), "y", OnnxType::kInt64, {-1});
  const std::string any_number = part(1, part(2, "samples"));
  const std::string attribute = part(1, "to") + number(3, 7) + "\xa0\x01\x02";  // type, field 20: an integer
  const std::string cast =
      part(1, "x") + part(2, "Cast_0") + part(3, "Cast_0") + part(4, "Cast") + part(5, attribute);
  const std::string identity = part(1, "Cast_0") + part(2, "y") + part(3, "y") + part(4, "Identity");
  const std::string float_type = number(1, 1) + part(2, any_number + part(1, "\x08\xac\x02"));  // 300
  const std::string integer_type = number(1, 7) + part(2, any_number);
  const std::string inside = part(1, cast) + part(1, identity) + part(2, name) +
                             part(11, part(1, "x") + part(2, part(1, float_type))) +
                             part(12, part(1, "y") + part(2, part(1, integer_type)));
  ASSERT_GE(inside.size(), 128u);
  const std::string length = {static_cast<char>((inside.size() & 127) | 128),
                              static_cast<char>(inside.size() >> 7)};
  const std::string expected = number(1, 8) + part(2, "bitfed") + "\x3a" + length + inside +
                               part(8, part(1, "") + number(2, 17)) + part(14, part(1, "k") + part(2, "v"));
  const Bytes found = graph.model({{"k", "v"}});
  EXPECT_EQ(std::string(found.begin(), found.end()), expected);
}

std::string exported(const SomeModel& some) {
  const Bytes bytes =
      export_onnx(*some.model, "model", std::vector<std::string>(some.model->class_count(), "a"));
  return {bytes.begin(), bytes.end()};
}

// How many nodes there are of an operator.
size_t count_nodes(const std::string& graph, const std::string& op) {
  const std::string type = part(4, op);
  size_t count = 0;
  for (size_t at = graph.find(type); at != std::string::npos; at = graph.find(type, at + 1)) ++count;
  return count;
}

// A node stands between every sum of signs and its norm, or runtimes would make one convolution of both. The
// stem, whose sums signs depend on, is no Conv at all. ReduceSum names no order of its sums; signs and pools
// need theirs.
TEST(ExportOnnx, BinaryNetworksLeaveRuntimesNoChoice) {
  const std::string resnet10 = exported(some_network_model("binary resnet10", true, 16, 8, 8, 3, 1));
  EXPECT_EQ(count_nodes(resnet10, "Conv"), 8u + 3u);
  EXPECT_EQ(count_nodes(resnet10, "Round"), 8u + 3u);
  EXPECT_EQ(count_nodes(resnet10, "CumSum"), 8u + 1u);
  const std::string resnet18 = exported(some_network_model("binary resnet18", true, 16, 4, 4, 1, 1));
  EXPECT_EQ(count_nodes(resnet18, "Conv"), 16u + 3u);
  EXPECT_EQ(count_nodes(resnet18, "Round"), 16u + 3u);
  EXPECT_EQ(count_nodes(resnet18, "CumSum"), 16u + 1u);
  const std::string cnn4 = exported(some_network_model("binary cnn4", true, 16, 16, 16, 1, 1));
  EXPECT_EQ(count_nodes(cnn4, "Conv"), 3u);
  EXPECT_EQ(count_nodes(cnn4, "MaxPool"), 4u);
  EXPECT_EQ(count_nodes(cnn4, "CumSum"), 3u);
  for (const std::string& graph : {resnet10, resnet18, cnn4}) EXPECT_EQ(count_nodes(graph, "ReduceSum"), 0u);
}

TEST(ExportOnnx, RealResnets) {
  const std::string resnet = exported(some_network_model("real resnet10", false, 5, 7, 6, 3, 1));
  EXPECT_EQ(count_nodes(resnet, "Conv"), 1u + 8u + 3u);
  EXPECT_EQ(count_nodes(resnet, "Relu"), 1u + 8u);
  EXPECT_EQ(count_nodes(resnet, "Round"), 0u);
}

TEST(ExportOnnx, SaysWhatItCannotCarry) {
  const SomeModel flat = some_tsetlin_models().front();
  const std::vector<std::string> names(3, "a");
  EXPECT_FALSE(export_onnx(*flat.model, "model", names).empty());
  std::vector<TsetlinMember> members = dynamic_cast<const TsetlinModel&>(*flat.model).members();
  members[0].scale = 0;
  EXPECT_THAT(error_text([&] { export_onnx(TsetlinModel(3, members), "model", names); }),
              HasSubstr("depend on the batch"));
}

}  // namespace
}  // namespace bitfed
