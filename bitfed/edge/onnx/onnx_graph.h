#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

enum class OnnxType { kFloat = 1, kUint8 = 2, kInt8 = 3, kInt64 = 7, kBool = 9, kDouble = 11 };

// A graph of standard operators, written as the ONNX format has it (protobuf, onnx.proto): IR version 8,
// opset 17. Nodes are named by their results.
class OnnxGraph {
 public:
  using Shape = std::vector<int64_t>;
  using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>>;
  using Attributes = std::map<std::string, Attribute>;

  explicit OnnxGraph(std::string name) : name_(std::move(name)) {}

  // -1 in a shape is the number of samples.
  std::string input(const std::string& name, OnnxType type, const Shape& shape);
  void output(const std::string& value, const std::string& name, OnnxType type, const Shape& shape);

  std::string constant(const Shape& shape, const std::vector<float>& values);
  std::string constant(const Shape& shape, const std::vector<double>& values);
  std::string constant(const Shape& shape, const std::vector<int64_t>& values);
  std::string constant(const Shape& shape, const std::vector<int8_t>& values);

  // A node with one result.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const Attributes& attributes = {});
  std::string cast(const std::string& value, OnnxType type) {
    return node("Cast", {value}, {{"to", static_cast<int64_t>(type)}});
  }
  // Whole numbers from -128 to 127 as floats; they take a byte each.
  std::string small_floats(const Shape& shape, const std::vector<int8_t>& values) {
    return cast(constant(shape, values), OnnxType::kFloat);
  }
  // From begin to end (not included) along an axis.
  std::string slice(const std::string& value, int64_t axis, int64_t begin, int64_t end) {
    return node("Slice", {value, constant({1}, std::vector{begin}), constant({1}, std::vector{end}),
                          constant({1}, std::vector{axis})});
  }

  // The same, every `step`-th.
  std::string slice(const std::string& value, int64_t axis, int64_t begin, int64_t end, int64_t step) {
    return node("Slice", {value, constant({1}, std::vector{begin}), constant({1}, std::vector{end}),
                          constant({1}, std::vector{axis}), constant({1}, std::vector{step})});
  }

  // The whole file; `texts` become its metadata.
  Bytes model(const std::map<std::string, std::string>& texts) const;

 private:
  std::string add_constant(OnnxType type, const Shape& shape, const void* values, size_t bytes);
  std::string fresh_name(const std::string& op) { return op + "_" + std::to_string(count_++); }

  std::string name_;
  size_t count_ = 0;
  std::string nodes_, constants_, inputs_, outputs_;  // fields of the graph, encoded
};

}  // namespace bitfed
