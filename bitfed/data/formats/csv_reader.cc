#include "bitfed/data/formats/csv_reader.h"

#include <algorithm>

#include "bitfed/base/error.h"

namespace bitfed {

CsvReader::CsvReader(std::string_view text, std::string_view name) : text_(text), name_(name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  fields.clear();
  unquoted_.clear();
  while (at('\n') || (at('\r') && text_.substr(position_).starts_with("\r\n"))) {
    position_ += at('\r') ? 2 : 1;
    ++line_;
  }
  if (position_ == text_.size()) return false;
  record_line_ = line_;
  std::vector<size_t> owned;  // fields that live in unquoted_, whose strings may move while it grows
  do {
    const size_t before = unquoted_.size();
    fields.push_back(at('"') ? take_quoted() : take_plain());
    if (unquoted_.size() > before) owned.push_back(fields.size() - 1);
  } while (take_separator());
  for (size_t i = 0; i < owned.size(); ++i) fields[owned[i]] = unquoted_[i];
  return true;
}

// Up to a comma or the end of the line; the carriage return of a CRLF is not part of the field.
std::string_view CsvReader::take_plain() {
  const size_t end = std::min(text_.find_first_of(",\n\"", position_), text_.size());
  if (end < text_.size() && text_[end] == '"') {
    throw input_error("{}: line {}: a quote inside a field that does not start with one", name_, line_);
  }
  std::string_view field = text_.substr(position_, end - position_);
  position_ = end;
  const bool ends_line = end == text_.size() || text_[end] == '\n';
  if (ends_line && field.ends_with('\r')) field.remove_suffix(1);
  return field;
}

// A view of the text, or of a copy in unquoted_ if the field has doubled quotes. May span lines.
std::string_view CsvReader::take_quoted() {
  const size_t start = ++position_;
  bool doubled = false;
  for (;; ++position_) {
    position_ = text_.find('"', position_);
    if (position_ == std::string_view::npos) {
      throw input_error("{}: line {}: a quoted field is not closed", name_, record_line_);
    }
    if (position_ + 1 >= text_.size() || text_[position_ + 1] != '"') break;
    doubled = true;
    ++position_;
  }
  const std::string_view field = text_.substr(start, position_ - start);
  ++position_;
  line_ += static_cast<size_t>(std::count(field.begin(), field.end(), '\n'));
  if (!doubled) return field;
  std::string& copy = unquoted_.emplace_back();
  for (size_t i = 0; i < field.size(); ++i) {
    copy += field[i];
    if (field[i] == '"') ++i;
  }
  return copy;
}

bool CsvReader::take_separator() {
  if (at(',')) {
    ++position_;
    return true;
  }
  if (at('\r')) ++position_;
  if (position_ == text_.size()) return false;
  if (!at('\n')) throw input_error("{}: line {}: text follows a closing quote", name_, line_);
  ++position_;
  ++line_;
  return false;
}

}  // namespace bitfed
