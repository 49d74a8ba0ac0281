#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/run/run_folder.h"

namespace bitfed {

// The parts that page.cc puts together; all return HTML, with everything from outside escaped.

std::string page_style();

// The whole page around its body.
std::string html_document(std::string_view title, std::string_view body);

// Cards lie in two columns, a wide one across both.
std::string card(std::string_view heading, std::string_view body, bool is_wide = false);

// A card with one picture; "" where there is none.
std::string chart_card(std::string_view heading, const std::string& svg);

// A number for people that shows the exact one on hovering; a dash where there is none.
std::string bytes_html(std::optional<double> bytes);
std::string seconds_html(std::optional<double> seconds);
std::string fraction_html(std::optional<double> fraction);
std::string count_html(std::optional<double> count);

// A table that scrolls where it is long; `css_class` names its style.
std::string scrolled_table(std::string_view css_class, std::string_view head, std::string_view rows);

// A table of a hundred thousand clients cannot be opened: this many are shown, and a line before the table
// says so; "" where none is left out.
inline constexpr size_t kMaxTableRows = 500;
std::string rows_left_out(size_t shown, size_t all);

struct Figure {
  std::string name;   // plain text
  std::string value;  // HTML
  std::string note;   // plain text; empty: none
};

std::string figure_tiles(const std::vector<Figure>& figures);

// The headline figures: of the run itself, or the best of several.
std::vector<Figure> headline_figures(const std::vector<RunFolder>& runs);

std::string comparison_table(const std::vector<RunFolder>& runs);

// Mean and sample deviation of the runs that differ in their seed alone; "" where there are none.
std::string seeds_table(const std::vector<RunFolder>& runs);

// Accuracy over rounds, or bars where no run has two rounds to join.
std::string accuracy_chart(const std::vector<RunFolder>& runs);

// What differential privacy spent over rounds; "" where no run has any.
std::string epsilon_chart(const std::vector<RunFolder>& runs);

// The total uploads of the runs, as bars; "" where no run has one.
std::string upload_chart(const std::vector<RunFolder>& runs);

// The cards of one run; "" where it has nothing to show in one.
std::string costs_card(const RunFolder& run);
std::string clients_card(const RunFolder& run, bool is_wide);
std::string notes_card(const RunFolder& run);
std::string partition_card(const RunFolder& run);
std::string confusion_card(const RunFolder& run);
std::string clauses_card(const RunFolder& run);
std::string radio_card(const RunFolder& run);
std::string recipe_card(const RunFolder& run);
std::string samples_card(const RunFolder& run);

// For a run whose clients keep models of their own: which clients gain, the accuracies of all, and some
// clients with the classes that they hold.
std::string gains_card(const RunFolder& run);
std::string people_card(const RunFolder& run);
std::string chosen_card(const RunFolder& run);

}  // namespace bitfed
