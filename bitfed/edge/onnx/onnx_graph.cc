#include "bitfed/edge/onnx/onnx_graph.h"

#include <bit>

namespace bitfed {
namespace {

// The fields of a protobuf message, one behind the other.
class Message {
 public:
  Message& number(unsigned field, int64_t value) {
    varint(field << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& text(unsigned field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(unsigned field, const Message& value) { return text(field, value.bytes_); }
  Message& real(unsigned field, float value) {
    varint(field << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift & 255);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

constexpr int64_t kIrVersion = 8;
constexpr int64_t kOpset = 17;
// Numbers of AttributeProto.AttributeType.
constexpr int64_t kFloatAttribute = 1;
constexpr int64_t kIntAttribute = 2;
constexpr int64_t kStringAttribute = 3;
constexpr int64_t kIntsAttribute = 7;

Message encode_attribute(const std::string& name, const OnnxGraph::Attribute& value) {
  Message message;
  message.text(1, name);
  if (const auto* real = std::get_if<float>(&value)) message.real(2, *real).number(20, kFloatAttribute);
  if (const auto* number = std::get_if<int64_t>(&value)) message.number(3, *number).number(20, kIntAttribute);
  if (const auto* text = std::get_if<std::string>(&value))
    message.text(4, *text).number(20, kStringAttribute);
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t number : *numbers) message.number(8, number);
    message.number(20, kIntsAttribute);
  }
  return message;
}

Message encode_value(const std::string& name, OnnxType type, const OnnxGraph::Shape& shape) {
  Message dimensions;
  for (const int64_t length : shape)
    dimensions.message(1, length < 0 ? Message().text(2, "samples") : Message().number(1, length));
  const Message tensor = Message().number(1, static_cast<int64_t>(type)).message(2, dimensions);
  return Message().text(1, name).message(2, Message().message(1, tensor));
}

}  // namespace

std::string OnnxGraph::input(const std::string& name, OnnxType type, const Shape& shape) {
  inputs_ += Message().message(11, encode_value(name, type, shape)).bytes();
  return name;
}

void OnnxGraph::output(const std::string& value, const std::string& name, OnnxType type, const Shape& shape) {
  const Message message = Message().text(1, value).text(2, name).text(3, name).text(4, "Identity");
  nodes_ += Message().message(1, message).bytes();
  outputs_ += Message().message(12, encode_value(name, type, shape)).bytes();
}

std::string OnnxGraph::add_constant(OnnxType type, const Shape& shape, const void* values, size_t bytes) {
  const std::string name = fresh_name("constant");
  Message tensor;
  for (const int64_t length : shape) tensor.number(1, length);
  tensor.number(2, static_cast<int64_t>(type)).text(8, name);
  tensor.text(9, {static_cast<const char*>(values), bytes});
  constants_ += Message().message(5, tensor).bytes();
  return name;
}

std::string OnnxGraph::constant(const Shape& shape, const std::vector<float>& values) {
  return add_constant(OnnxType::kFloat, shape, values.data(), values.size() * sizeof(float));
}
std::string OnnxGraph::constant(const Shape& shape, const std::vector<double>& values) {
  return add_constant(OnnxType::kDouble, shape, values.data(), values.size() * sizeof(double));
}
std::string OnnxGraph::constant(const Shape& shape, const std::vector<int64_t>& values) {
  return add_constant(OnnxType::kInt64, shape, values.data(), values.size() * sizeof(int64_t));
}
std::string OnnxGraph::constant(const Shape& shape, const std::vector<int8_t>& values) {
  return add_constant(OnnxType::kInt8, shape, values.data(), values.size());
}

std::string OnnxGraph::node(const std::string& op, const std::vector<std::string>& inputs,
                            const Attributes& attributes) {
  std::string result = fresh_name(op);
  Message message;
  for (const std::string& input : inputs) message.text(1, input);
  message.text(2, result).text(3, result).text(4, op);
  for (const auto& [name, value] : attributes) message.message(5, encode_attribute(name, value));
  nodes_ += Message().message(1, message).bytes();
  return result;
}

Bytes OnnxGraph::model(const std::map<std::string, std::string>& texts) const {
  const std::string graph = nodes_ + Message().text(2, name_).bytes() + constants_ + inputs_ + outputs_;
  Message model;
  model.number(1, kIrVersion).text(2, "bitfed").text(7, graph);
  model.message(8, Message().text(1, "").number(2, kOpset));
  for (const auto& [key, value] : texts) model.message(14, Message().text(1, key).text(2, value));
  return {model.bytes().begin(), model.bytes().end()};
}

}  // namespace bitfed
