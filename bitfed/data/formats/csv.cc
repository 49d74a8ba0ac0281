#include "bitfed/data/formats/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/base/utf8.h"
#include "bitfed/data/formats/csv_reader.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaximumColumns = 65536;
constexpr size_t kMaximumClasses = std::numeric_limits<uint16_t>::max();
constexpr char kSeparator = '\x1f';  // between the parts of a person's key: no cell contains it

// A cell for an error message: on one line, long cells cut.
std::string shown(std::string_view cell) {
  constexpr size_t kMaxBytes = 40;
  return fmt::format("{:?}{}", cell.substr(0, kMaxBytes), cell.size() > kMaxBytes ? "…" : "");
}

std::string_view trimmed(std::string_view cell) {
  const size_t first = cell.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return cell.substr(first, cell.find_last_not_of(" \t") - first + 1);
}

// What spreadsheets and data frames write for a missing value.
bool is_null(std::string_view cell) {
  constexpr std::array<std::string_view, 9> kNulls = {"",    "null", "NULL", "NA", "N/A",
                                                      "NaN", "nan",  "None", "?"};
  return std::find(kNulls.begin(), kNulls.end(), cell) != kNulls.end();
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Distinct strings, numbered in the order of their first occurrence.
class StringIndex {
 public:
  uint32_t number(std::string_view text) {
    const auto [entry, added] =
        indices_.try_emplace(std::string(text), static_cast<uint32_t>(strings_.size()));
    if (added) strings_.push_back(entry->first);
    return entry->second;
  }
  const std::vector<std::string>& strings() const { return strings_; }

 private:
  std::unordered_map<std::string, uint32_t> indices_;
  std::vector<std::string> strings_;
};

bool is_integer(const std::string& text, int64_t& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

// old index -> index in the sorted order.
std::vector<uint32_t> sorted_ranks(const std::vector<std::string>& strings) {
  std::vector<int64_t> values(strings.size());
  bool integers = true;
  for (size_t i = 0; i < strings.size(); ++i) integers = integers && is_integer(strings[i], values[i]);
  std::vector<uint32_t> order(strings.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (integers && values[a] != values[b]) return values[a] < values[b];
    return strings[a] < strings[b];
  });
  std::vector<uint32_t> ranks(strings.size());
  for (uint32_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = rank;
  return ranks;
}

// The role of each column of the file.
struct Layout {
  size_t label = 0;
  std::vector<size_t> person;
  std::vector<size_t> numeric;
  std::vector<size_t> used;        // all of the above, in the order of the file
  std::vector<std::string> names;  // as in the header; "column 3" for one without a name
  std::vector<size_t> nameless;    // places in `numeric`; pandas says "Unnamed: 0", "index"
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

size_t find_column(const std::vector<std::string>& header, const std::string& column, std::string_view name,
                   std::string_view purpose) {
  const auto found = std::find(header.begin(), header.end(), column);
  if (found != header.end()) return static_cast<size_t>(found - header.begin());
  throw input_error("{}: has no column '{}' ({}){}", name, column, purpose, suggestion(column, header));
}

// Files that are taken for CSV, by how they begin.
void refuse_other_files(std::string_view text, std::string_view name) {
  constexpr std::array<std::array<std::string_view, 2>, 5> kFiles = {{
      {"\x1f\x8b", "a gzip file"},
      {"PK\x03\x04", "a ZIP archive, perhaps a spreadsheet"},
      {"PAR1", "a Parquet file"},
      {"\xff\xfe", "UTF-16"},
      {"\xfe\xff", "UTF-16"},
  }};
  for (const auto& [begin, what] : kFiles) {
    if (text.starts_with(begin)) throw input_error("{}: found {}, expected CSV in UTF-8", name, what);
  }
}

// A header of one field, which holds another separator.
void refuse_other_separators(std::string_view header, std::string_view name) {
  constexpr std::array<std::array<std::string_view, 2>, 4> kSeparators = {
      {{"\r", "lines that end in a carriage return alone, expected LF or CRLF"},
       {";", "columns separated by semicolons, expected commas"},
       {"\t", "columns separated by tabs, expected commas"},
       {"|", "columns separated by |, expected commas"}}};
  for (const auto& [separator, what] : kSeparators) {
    if (header.find(separator) != std::string_view::npos)
      throw input_error("{}: line 1: found {}", name, what);
  }
}

std::vector<std::string> check_header(const std::vector<std::string_view>& fields, std::string_view name) {
  if (fields.size() > kMaximumColumns) {
    throw input_error("{}: line 1: {} columns, expected at most {}", name, fields.size(), kMaximumColumns);
  }
  if (fields.size() == 1) refuse_other_separators(fields.front(), name);
  std::vector<std::string> header;
  std::unordered_map<std::string_view, size_t> seen;
  for (const std::string_view field : fields) {
    header.emplace_back(trimmed(field));
    if (has_control_characters(header.back())) {
      throw input_error("{}: line 1: column name {} has control characters", name, shown(header.back()));
    }
    if (!is_utf8(header.back()))
      throw input_error("{}: line 1: column name {} is not UTF-8", name, shown(header.back()));
    const auto [other, added] = seen.try_emplace(trimmed(field), header.size());
    if (!added && !header.back().empty()) {
      throw input_error("{}: line 1: columns {} and {} are both named '{}'", name, other->second,
                        header.size(), header.back());
    }
  }
  return header;
}

// `person` is one column of that name or, if there is none, a list of columns. Ignored columns must exist: a
// mistyped name would otherwise become a feature.
Layout make_layout(const std::vector<std::string>& header, std::string_view name, const CsvOptions& options) {
  Layout layout;
  layout.names = header;
  layout.label = find_column(header, options.label, name, "label");
  if (!options.person.empty()) {
    const bool whole = std::find(header.begin(), header.end(), options.person) != header.end();
    const auto parts = whole ? std::vector<std::string>{options.person} : split_names(options.person);
    for (const std::string& part : parts) layout.person.push_back(find_column(header, part, name, "person"));
    if (std::find(layout.person.begin(), layout.person.end(), layout.label) != layout.person.end()) {
      throw input_error("{}: column '{}' is both label and person, expected two columns", name,
                        options.label);
    }
  }
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i].empty()) layout.names[i] = fmt::format("column {}", i + 1);
  }
  for (const std::string& column : options.ignore) {
    if (!contains(layout.names, column)) find_column(header, column, name, "ignore");
  }
  for (size_t i = 0; i < header.size(); ++i) {
    const bool ignored = contains(options.ignore, header[i]) || contains(options.ignore, layout.names[i]);
    const bool of_person = std::find(layout.person.begin(), layout.person.end(), i) != layout.person.end();
    const bool listed = options.only.empty() || contains(options.only, layout.names[i]);
    const bool is_number = i != layout.label && !ignored && !of_person && listed;
    if (is_number && options.only.empty()) {
      if (header[i].empty() || header[i] == "index" || header[i].starts_with("Unnamed: "))
        layout.nameless.push_back(layout.numeric.size());
      layout.numeric.push_back(i);
    }
    if (is_number || i == layout.label || of_person) layout.used.push_back(i);
  }
  for (const std::string& column : options.only)
    layout.numeric.push_back(find_column(layout.names, column, name, "a number"));
  if (layout.numeric.empty()) throw input_error("{}: has no numeric column to learn from", name);
  return layout;
}

// Converts records to rows of the data set.
class TableBuilder {
 public:
  TableBuilder(Layout layout, std::string_view name) : layout_(std::move(layout)), name_(name) {
    for (const size_t column : layout_.numeric) dataset_.columns.push_back(layout_.names[column]);
  }

  void add(const std::vector<std::string_view>& fields, size_t line) {
    line_ = line;
    if (fields.size() != layout_.names.size()) {
      throw input_error("{}: line {}: {} fields, expected {} as in the header", name_, line_, fields.size(),
                        layout_.names.size());
    }
    const std::optional<size_t> empty = first_null(fields);
    // The other cells of a dropped row are checked, too.
    for (const size_t column : layout_.numeric) {
      if (!is_null(trimmed(fields[column]))) dataset_.values.push_back(number(fields, column));
    }
    const std::string_view label = text(fields, layout_.label);
    const std::string person = person_of(fields);
    if (empty) {
      drop(*empty);
      return;
    }
    labels_.push_back(classes_.number(label));
    if (classes_.strings().size() > kMaximumClasses) {
      throw input_error("{}: line {}: column '{}' has more than {} different labels", name_, line_,
                        layout_.names[layout_.label], kMaximumClasses);
    }
    if (!layout_.person.empty()) dataset_.groups.push_back(people_.number(person));
  }

  // Renumbers classes and people, which were numbered by first occurrence, in sorted order: the result does
  // not depend on the order of the rows.
  Dataset finish() {
    if (labels_.empty() && dataset_.dropped_rows > 0) {
      throw input_error("{}: all {} rows have empty cells, the first in {}; expected a complete row", name_,
                        dataset_.dropped_rows, first_dropped_);
    }
    if (labels_.empty()) throw input_error("{}: has a header but no rows", name_);
    refuse_measurements();
    refuse_row_numbers();
    const std::vector<uint32_t> classes = sorted_ranks(classes_.strings());
    dataset_.class_names = in_order(classes_.strings(), classes);
    for (const uint32_t label : labels_) dataset_.labels.push_back(static_cast<uint16_t>(classes[label]));
    const std::vector<uint32_t> people = sorted_ranks(people_.strings());
    dataset_.group_names = in_order(people_.strings(), people);
    for (std::string& key : dataset_.group_names) std::replace(key.begin(), key.end(), kSeparator, ',');
    for (uint32_t& group : dataset_.groups) group = people[group];
    return std::move(dataset_);
  }

 private:
  static std::vector<std::string> in_order(const std::vector<std::string>& strings,
                                           const std::vector<uint32_t>& ranks) {
    std::vector<std::string> sorted(strings.size());
    for (size_t i = 0; i < strings.size(); ++i) sorted[ranks[i]] = strings[i];
    return sorted;
  }

  // A label column of numbers that are not all whole is a measurement, not a class. "1.0" is whole: data
  // frames write classes that way where a column has gaps.
  void refuse_measurements() const {
    const std::string* fraction = nullptr;
    for (const std::string& label : classes_.strings()) {
      double value = 0;
      const auto [end, code] = std::from_chars(label.data(), label.data() + label.size(), value);
      if (code != std::errc() || end != label.data() + label.size()) return;
      if (value != std::floor(value) && fraction == nullptr) fraction = &label;
    }
    if (fraction == nullptr) return;
    throw input_error("{}: column '{}' holds real values such as {}, expected classes (label)", name_,
                      layout_.names[layout_.label], shown(*fraction));
  }

  // The index that a data frame writes beside its columns would be learned from.
  void refuse_row_numbers() const {
    constexpr size_t kLeastRows = 3;  // to tell by
    const size_t columns = layout_.numeric.size();
    for (const size_t place : layout_.nameless) {
      bool counts = labels_.size() >= kLeastRows;
      for (size_t row = 0; counts && row < labels_.size(); ++row) {
        const float value = dataset_.values[row * columns + place];
        counts =
            value == std::floor(value) && (row == 0 || value > dataset_.values[(row - 1) * columns + place]);
      }
      if (counts) {
        throw input_error(
            "{}: column '{}' counts the rows, as a data frame's index does; leave it out (ignore), or name it",
            name_, layout_.names[layout_.numeric[place]]);
      }
    }
  }

  // The first used column that is null in this row.
  std::optional<size_t> first_null(const std::vector<std::string_view>& fields) const {
    for (const size_t column : layout_.used) {
      if (is_null(trimmed(fields[column]))) return column;
    }
    return std::nullopt;
  }

  // Removes the values of the current row.
  void drop(size_t column) {
    if (dataset_.dropped_rows++ == 0) {
      first_dropped_ = fmt::format("line {}, column '{}'", line_, layout_.names[column]);
    }
    dataset_.values.resize(labels_.size() * layout_.numeric.size());
  }

  std::string person_of(const std::vector<std::string_view>& fields) const {
    std::string key;
    for (const size_t column : layout_.person) {
      if (!key.empty()) key += kSeparator;
      key += text(fields, column);
    }
    return key;
  }

  std::string_view text(const std::vector<std::string_view>& fields, size_t column) const {
    const std::string_view cell = trimmed(fields[column]);
    if (has_control_characters(cell)) throw bad_cell(column, shown(cell) + " has control characters");
    if (!is_utf8(cell)) throw bad_cell(column, shown(cell) + " is not UTF-8");
    return cell;
  }

  // from_chars does not accept a plus sign.
  float number(const std::vector<std::string_view>& fields, size_t column) const {
    std::string_view cell = trimmed(fields[column]);
    if (cell.size() > 1 && cell[0] == '+' && cell[1] != '-') cell.remove_prefix(1);
    double value = 0;
    const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    const bool whole = code == std::errc() && end == cell.data() + cell.size();
    // Written so that NaN fails, too.
    if (whole && std::fabs(value) <= std::numeric_limits<float>::max()) return static_cast<float>(value);
    throw bad_cell(column, fmt::format("is {}, expected a finite number", shown(cell)));
  }

  Error bad_cell(size_t column, const std::string& what) const {
    return input_error("{}: line {}: column '{}' {}", name_, line_, layout_.names[column], what);
  }

  Layout layout_;
  std::string_view name_;
  size_t line_ = 0;
  std::string first_dropped_;  // the empty cell of the first dropped row
  Dataset dataset_;
  std::vector<uint32_t> labels_;
  StringIndex classes_;
  StringIndex people_;
};

}  // namespace

Dataset parse_csv(std::string_view text, std::string_view name, const CsvOptions& options) {
  refuse_other_files(text, name);
  CsvReader reader(text, name);
  std::vector<std::string_view> fields;
  if (!reader.next(fields)) throw input_error("{}: is empty, expected a CSV table with a header", name);
  const std::vector<std::string> header = check_header(fields, name);
  TableBuilder table(make_layout(header, name, options), name);
  while (reader.next(fields)) table.add(fields, reader.line());
  Dataset dataset = table.finish();
  dataset.name = fs::path(name).stem().string();
  return dataset;
}

bool has_columns(const fs::path& path, const std::string& columns) {
  if (columns.empty()) return true;
  const std::string text = read_text_file(path);
  CsvReader reader(text, path.string());
  std::vector<std::string_view> fields;
  if (!reader.next(fields)) return false;
  const auto has = [&](std::string_view column) {
    return std::any_of(fields.begin(), fields.end(),
                       [&](std::string_view field) { return trimmed(field) == column; });
  };
  const std::vector<std::string> names = split_names(columns);
  return has(columns) || std::all_of(names.begin(), names.end(), has);
}

std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  for (size_t start = 0; start < list.size();) {
    const size_t comma = std::min(list.find(',', start), list.size());
    names.emplace_back(trimmed(list.substr(start, comma - start)));
    start = comma + 1;
  }
  return names;
}

Dataset load_csv(const fs::path& path, const CsvOptions& options) {
  return parse_csv(read_text_file(path), path.string(), options);
}

}  // namespace bitfed
