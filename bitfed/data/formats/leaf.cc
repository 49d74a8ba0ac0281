#include "bitfed/data/formats/leaf.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/data/formats/arrays.h"

namespace bitfed {
namespace {

constexpr size_t kMaximumDepth = 16;

// Receives the document value by value. `path` holds the keys of the objects that are open; arrays count as
// depth alone.
class LeafReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit LeafReader(const std::string& name) : name_(name) {}

  bool null() override { return take_text("null"); }
  bool boolean(bool value) override { return take_text(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return take_number(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) override { return take_number(static_cast<double>(value)); }
  bool number_float(double value, const std::string& /*text*/) override { return take_number(value); }
  bool string(std::string& value) override { return take_text(value); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return true; }

  bool start_object(size_t /*size*/) override {
    if (is_in("x") || is_in("y")) throw unexpected("an object");
    path_.emplace_back();
    return deeper();
  }
  bool key(std::string& value) override {
    path_.back() = value;
    if (path_.size() == 2 && path_[0] == "user_data") begin_user(value);
    return true;
  }
  bool end_object() override {
    if (path_.size() == 3 && path_[0] == "user_data") end_user();
    path_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(size_t /*size*/) override {
    if (is_in("x") || is_in("y")) ++arrays_;
    if (arrays_ > (is_in("x") ? 2u : 1u)) throw unexpected("an array within the values of a sample");
    return deeper();
  }
  bool end_array() override {
    --depth_;
    if (arrays_ == 0) return true;
    if (is_in("x") && arrays_ == 2) end_row();
    --arrays_;
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    throw input_error("{}: not valid JSON at byte {}", name_, position);
  }

  NamedSamples finish() {
    if (samples_.classes.empty())
      throw input_error("{}: found no samples, expected user_data of LEAF", name_);
    check_counts();
    return std::move(samples_);
  }
  size_t width() const { return width_; }

 private:
  bool is_in(std::string_view key) const {
    return path_.size() == 3 && path_[0] == "user_data" && path_[2] == key;
  }
  Error unexpected(std::string_view what) const {
    return input_error("{}: user_data: {:?}: {}: found {}", name_, path_[1], path_[2], what);
  }
  bool deeper() {
    if (++depth_ > kMaximumDepth) throw input_error("{}: nested deeper than {}", name_, kMaximumDepth);
    return true;
  }

  bool is_in_list(std::string_view key) const { return path_.size() == 1 && path_[0] == key && depth_ == 2; }

  bool take_number(double value) {
    if (is_in_list("num_samples")) announced_.push_back(value);
    if (is_in("x") && arrays_ == 2) {
      if (!(std::fabs(value) <= std::numeric_limits<float>::max()))
        throw unexpected("a number that is too large");
      samples_.data.values.push_back(static_cast<float>(value));
    } else if (is_in("y") && arrays_ == 1) {
      const bool is_whole = std::fabs(value) < 1e15 && value == std::floor(value);
      add_label(is_whole ? fmt::format("{}", static_cast<int64_t>(value)) : fmt::format("{}", value));
    } else if (is_in("x") || is_in("y")) {
      throw unexpected("a number, expected an array");
    }
    return true;
  }
  bool take_text(const std::string& value) {
    if (is_in_list("users")) users_.push_back(value);
    if (is_in("y") && arrays_ == 1) {
      add_label(value);
    } else if (is_in("x") || is_in("y")) {
      throw unexpected("a value that is no number");
    }
    return true;
  }
  void add_label(std::string label) {
    samples_.classes.push_back(std::move(label));
    samples_.people.push_back(user_);
  }

  void end_row() {
    const size_t found = samples_.data.values.size() - rows_ * width_;
    if (width_ == 0) width_ = found;
    if (found != width_ || found == 0)
      throw input_error("{}: user_data: {:?}: sample {} has {} values, expected {}", name_, user_,
                        rows_ - rows_before_, found, width_ == 0 ? 1 : width_);
    ++rows_;
  }
  void begin_user(const std::string& user) {
    user_ = user;
    rows_before_ = rows_;
  }
  void end_user() {
    const size_t labels = samples_.classes.size();
    if (labels != rows_)
      throw input_error("{}: user_data: {:?}: {} samples in x, but {} labels in y", name_, user_,
                        rows_ - rows_before_, labels - rows_before_);
    found_[user_] += rows_ - rows_before_;
  }

  // Against what the document says of itself, where it does: a file cut by a tool is valid JSON.
  void check_counts() const {
    if (users_.empty() || announced_.empty()) return;
    if (users_.size() != announced_.size())
      throw input_error("{}: num_samples: found {} values, expected {}: one per user", name_,
                        announced_.size(), users_.size());
    for (size_t i = 0; i < users_.size(); ++i) {
      const auto found = found_.find(users_[i]);
      const size_t samples = found != found_.end() ? found->second : 0;
      if (static_cast<double>(samples) != announced_[i])
        throw input_error("{}: user_data: {:?}: found {} samples, expected {} (num_samples)", name_,
                          users_[i], samples, announced_[i]);
    }
  }

  const std::string& name_;
  std::vector<std::string> path_;
  size_t depth_ = 0;
  size_t arrays_ = 0;  // open ones within x or y
  std::string user_;
  size_t rows_ = 0;
  size_t rows_before_ = 0;  // of other users
  size_t width_ = 0;
  std::vector<std::string> users_;  // as listed, with the samples that each is said to have
  std::vector<double> announced_;
  std::map<std::string, size_t> found_;
  NamedSamples samples_;
};

}  // namespace

NamedSamples parse_leaf(std::string_view text, const std::vector<size_t>& image, const std::string& name) {
  LeafReader reader(name);
  nlohmann::json::sax_parse(text, &reader);
  const size_t width = reader.width();
  NamedSamples samples = reader.finish();
  samples.data.name = name;
  if (image.empty()) {
    for (size_t i = 0; i < width; ++i) samples.data.columns.push_back(fmt::format("column {}", i + 1));
    return samples;
  }
  if (image[0] * image[1] * image[2] != width) {
    throw input_error("{}: found {} values per sample, expected {} x {} x {} (data.image)", name, width,
                      image[0], image[1], image[2]);
  }
  samples.data.height = image[0];
  samples.data.width = image[1];
  samples.data.channels = image[2];
  samples.data.pixels = pixels_of(samples.data.values, name);
  samples.data.values = {};
  return samples;
}

}  // namespace bitfed
