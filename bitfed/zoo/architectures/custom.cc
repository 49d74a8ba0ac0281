// A network that a recipe spells out, one layer per line:
//   convolution CHANNELS [kernel=K] [stride=S] [valid] [bias] [real]
//   norm | relu | hardtanh | activation | max-pool K | average-pool [K] | dropout RATE
//   block CHANNELS [stride=S]
//   dense UNITS|classes [bias]
// Tensors are named by the layer's index: layers.0.weights, layers.1.scale. docs/extend/architecture.md
// explains.

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "bitfed/base/error.h"
#include "bitfed/zoo/architectures/architectures.h"

namespace bitfed {
namespace {

// A model file may hold a description as well: its error texts and its memory must stay bounded.
constexpr size_t kMaxLayers = 256;
constexpr size_t kMaxLineLength = 200;
constexpr uint64_t kMaxValues = uint64_t{1} << 26;  // of all layers together, per image
constexpr uint32_t kMaxChannels = 4096;
constexpr uint32_t kMaxUnits = 65535;

// The words of one line: a kind, then a number or `classes`, options with a value and flags, in any order.
class Line {
 public:
  Line(const std::string& text, std::string where) : where_(std::move(where)) {
    std::istringstream stream(text);
    stream >> kind_;
    for (std::string word; stream >> word;) words_.push_back(word);
    if (kind_.empty()) refuse("is empty, expected a layer");
  }

  const std::string& kind() const { return kind_; }

  uint32_t size(const char* what, uint32_t max) {
    for (auto word = words_.begin(); word != words_.end(); ++word) {
      if (std::isdigit(static_cast<unsigned char>((*word)[0])) == 0) continue;
      const uint32_t value = whole(*word, what, max);
      words_.erase(word);
      return value;
    }
    refuse(fmt::format("expected {} behind '{}'", what, kind_));
  }

  double fraction(const char* what) {
    if (words_.empty()) refuse(fmt::format("expected {} behind '{}'", what, kind_));
    const std::string word = words_.front();
    double value = -1;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || end != word.data() + word.size() || !(value >= 0 && value < 1))
      refuse(fmt::format("{}: found '{}', expected a number from 0 to below 1", what, word));
    words_.erase(words_.begin());
    return value;
  }

  uint32_t option(const std::string& name, uint32_t fallback, uint32_t max) {
    for (auto word = words_.begin(); word != words_.end(); ++word) {
      if (!word->starts_with(name + "=")) continue;
      const uint32_t value = whole(word->substr(name.size() + 1), name.c_str(), max);
      words_.erase(word);
      return value;
    }
    return fallback;
  }

  bool flag(const std::string& name) { return std::erase(words_, name) > 0; }
  bool is_bare() const { return words_.empty(); }

  void finish() const {
    if (!words_.empty()) refuse(fmt::format("found '{}', which means nothing to '{}'", words_[0], kind_));
  }

  [[noreturn]] void refuse(const std::string& reason) const { throw input_error("{}: {}", where_, reason); }

 private:
  uint32_t whole(const std::string& word, const char* what, uint32_t max) const {
    uint32_t value = 0;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (code != std::errc() || end != word.data() + word.size() || value < 1 || value > max)
      refuse(fmt::format("{}: found '{}', expected a whole number from 1 to {}", what, word, max));
    return value;
  }

  std::string where_;
  std::string kind_;
  std::vector<std::string> words_;
};

class CustomNetwork {
 public:
  explicit CustomNetwork(const NetworkSpec& spec)
      : spec_(spec),
        builder_({spec.height, spec.image_width, spec.channels}, spec.binary, spec.static_signs) {}

  Architecture describe() {
    builder_.at("layers");
    if (spec_.layers.size() > kMaxLayers)
      throw input_error("layers: found {}, expected at most {}", spec_.layers.size(), kMaxLayers);
    for (size_t i = 0; i < spec_.layers.size(); ++i) add(i);
    if (awaits_norm_) builder_.refuse("expected 'norm' behind a binary convolution");
    Architecture architecture = builder_.finish(spec_.classes);
    check_memory(architecture);
    return architecture;
  }

 private:
  // Layers without weights take memory, but no bytes of a file.
  static void check_memory(const Architecture& architecture) {
    uint64_t values = 0;
    for_each_record(architecture.layers, [&](const LayerRecord& record) { values += record.out.count(); });
    if (values > kMaxValues)
      throw input_error("layers: found {} values per image, expected at most {}", values, kMaxValues);
  }

  void check_line(size_t index) const {
    const std::string& text = spec_.layers[index];
    if (text.size() > kMaxLineLength) {
      throw input_error("layer {}: found {} characters, expected at most {}", index + 1, text.size(),
                        kMaxLineLength);
    }
    for (const char c : text) {
      if (std::isprint(static_cast<unsigned char>(c)) == 0)
        throw input_error("layer {}: found a character that is not printable ASCII", index + 1);
    }
  }

  void add(size_t index) {
    check_line(index);
    const std::string where = fmt::format("layer {} '{}'", index + 1, spec_.layers[index]);
    builder_.at(where);
    Line line(spec_.layers[index], where);
    name_ = fmt::format("layers.{}", index);
    static const std::map<std::string, void (CustomNetwork::*)(Line*)> kKinds = {
        {"convolution", &CustomNetwork::convolution},
        {"norm", &CustomNetwork::norm},
        {"relu", &CustomNetwork::activation},
        {"hardtanh", &CustomNetwork::activation},
        {"activation", &CustomNetwork::activation},
        {"max-pool", &CustomNetwork::max_pool},
        {"average-pool", &CustomNetwork::average_pool},
        {"dropout", &CustomNetwork::dropout},
        {"block", &CustomNetwork::block},
        {"dense", &CustomNetwork::dense},
    };
    const auto kind = kKinds.find(line.kind());
    if (kind == kKinds.end()) {
      std::string known;
      for (const auto& [name, add_kind] : kKinds) known += (known.empty() ? "" : ", ") + name;
      line.refuse(fmt::format("found '{}', expected one of {}", line.kind(), known));
    }
    // The sums of a binary convolution are in the hundreds: only behind batch norm are they of use.
    if (awaits_norm_ && line.kind() != "norm") line.refuse("expected 'norm' behind a binary convolution");
    awaits_norm_ = false;
    (this->*kind->second)(&line);
    line.finish();
  }

  // "real" and "binary" say what a layer is where it is not what the method trains.
  bool is_binary(Line* line, bool can_be_binary) const {
    const bool real = line->flag("real");
    const bool binary = line->flag("binary");
    if (real && binary) line->refuse("found 'real' and 'binary', expected one of them");
    if (binary && !spec_.binary) line->refuse("found 'binary', but the method trains real networks");
    if (binary && !can_be_binary)
      line->refuse("found 'binary', expected a convolution: dense layers are real");
    return spec_.binary && can_be_binary && !real;
  }

  void convolution(Line* line) {
    if (dense_before_) line->refuse("found a convolution behind a dense layer, which leaves no image");
    ConvolutionRecord record;
    record.name = name_;
    record.signs_name = name_ + ".signs";
    record.channels = line->size("the number of channels", kMaxChannels);
    record.kernel.side = line->option("kernel", 3, 15);
    record.kernel.stride = line->option("stride", 1, 15);
    record.kernel.valid = line->flag("valid");
    const bool biased = line->flag("bias");
    record.sign_weights = is_binary(line, true);
    record.sign_inputs = record.sign_weights && !builder_.empty();
    if (biased && record.sign_weights)
      line->refuse("found 'bias', expected none at a binary convolution: the batch norm behind it has one");
    builder_.convolution(record);
    if (biased) builder_.bias(name_);
    awaits_norm_ = record.sign_weights;
  }

  void dense(Line* line) {
    is_binary(line, false);
    const uint32_t units =
        line->flag("classes") ? spec_.classes : line->size("a number of units or 'classes'", kMaxUnits);
    const bool biased = line->flag("bias");
    builder_.dense(name_, units);
    if (biased) builder_.bias(name_);
    dense_before_ = true;
  }

  void block(Line* line) {
    if (builder_.empty()) line->refuse("found a block at the beginning, expected a convolution before it");
    if (dense_before_) line->refuse("found a block behind a dense layer, which leaves no image");
    const uint32_t channels = line->size("the number of channels", kMaxChannels);
    builder_.basic_block({.name = name_,
                          .channels = channels,
                          .stride = line->option("stride", 1, 15),
                          .activation = default_activation(),
                          .shortcuts = spec_.shortcuts});
  }

  void norm(Line* /*line*/) {
    if (builder_.empty())
      builder_.refuse("found at the beginning, expected a convolution or dense layer before it");
    builder_.norm(name_);
  }

  void activation(Line* line) {
    if (line->kind() == "activation") return builder_.activation(default_activation());
    builder_.activation(line->kind() == "relu" ? Activation::kRelu : Activation::kHardtanh);
  }

  void max_pool(Line* line) { builder_.max_pool(line->size("the side of the window", 256)); }
  void average_pool(Line* line) {
    builder_.average_pool(line->is_bare() ? 0 : line->size("the side of the window", 256));
  }
  void dropout(Line* line) { builder_.dropout(line->fraction("the rate")); }

  Activation default_activation() const { return spec_.binary ? Activation::kHardtanh : Activation::kRelu; }

  const NetworkSpec& spec_;
  ArchitectureBuilder builder_;
  std::string name_;
  bool awaits_norm_ = false;
  bool dense_before_ = false;
};

}  // namespace

Architecture describe_custom(const NetworkSpec& spec) {
  return CustomNetwork(spec).describe();
}

}  // namespace bitfed
