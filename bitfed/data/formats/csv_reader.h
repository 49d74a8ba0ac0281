#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bitfed {

// Splits CSV text (RFC 4180: quoted fields, doubled quotes, CRLF or LF) into records. A byte order mark and
// empty lines are skipped. The fields of a record stay valid until the next call.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view name);

  // False at the end of the text. An input_error names the line of an unclosed or misplaced quote.
  bool next(std::vector<std::string_view>& fields);
  size_t line() const { return record_line_; }  // of the record's first character, from 1

 private:
  std::string_view take_plain();
  std::string_view take_quoted();
  bool take_separator();  // true: another field of the same record follows
  bool at(char c) const { return position_ < text_.size() && text_[position_] == c; }

  std::string_view text_;
  std::string name_;
  size_t position_ = 0;
  size_t line_ = 1;
  size_t record_line_ = 1;
  std::vector<std::string> unquoted_;  // fields with doubled quotes of the current record
};

}  // namespace bitfed
