#include "bitfed/report/page_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "bitfed/report/charts.h"
#include "bitfed/report/clause_picture.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"
#include "bitfed/report/partition_picture.h"

namespace bitfed {
namespace {

constexpr size_t kClausesPerClass = 3;
constexpr size_t kManyClasses = 20;  // from here on one clause a class: the page must stay a page

std::string picture(const std::string& svg) {
  return fmt::format("<div class=\"picture\">{}</div>", svg);
}

template <typename T>
std::string cost_row(std::string_view name, const std::optional<T>& value,
                     std::string (*html)(std::optional<double>)) {
  if (!value) return "";
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", name,
                     html(static_cast<double>(*value)));
}

Bar time_bar(const std::string& label, double seconds) {
  return {label, seconds, human_seconds(seconds), fmt::format("{} seconds", exact_number(seconds)), 0};
}

std::string time_bars(const RunSummary& summary) {
  std::vector<Bar> bars;
  if (summary.train_seconds) bars.push_back(time_bar("Training, all clients", *summary.train_seconds));
  if (summary.aggregation_seconds) bars.push_back(time_bar("Aggregation", *summary.aggregation_seconds));
  if (summary.evaluation_seconds) bars.push_back(time_bar("Evaluation", *summary.evaluation_seconds));
  return bars.empty() ? ""
                      : fmt::format("<div class=\"picture chart\">{}</div>", bar_chart("Time by step", bars));
}

// A client's records over all rounds.
struct ClientTotal {
  size_t rounds = 0;
  size_t reused = 0;
  uint64_t samples = 0;
  uint64_t upload_bytes = 0;
  double seconds = 0;
};

// Numbers before names, numbers by value: 2 before 10.
struct ClientOrder {
  bool operator()(const std::string& a, const std::string& b) const { return key(a) < key(b); }
  static std::tuple<bool, size_t, std::string> key(const std::string& client) {
    const bool is_name = client.find_first_not_of("0123456789") != std::string::npos;
    return {is_name, is_name ? 0 : client.size(), client};
  }
};

std::map<std::string, ClientTotal, ClientOrder> totals(const std::vector<ClientRecord>& records) {
  std::map<std::string, ClientTotal, ClientOrder> clients;
  for (const ClientRecord& record : records) {
    ClientTotal& total = clients[record.client];
    ++total.rounds;
    total.reused += record.reused;
    total.samples = std::max(total.samples, record.samples);
    total.upload_bytes += record.upload_bytes;
    total.seconds += record.seconds;
  }
  return clients;
}

struct LargestTotals {
  double samples = 0;
  double upload_bytes = 0;
  double seconds = 0;
};

// The number, and behind it how much of the largest one it is.
std::string part_cell(double value, double largest, const std::string& html) {
  const double part = largest > 0 ? 100 * value / largest : 0;
  return fmt::format("<td class=\"part\" style=\"--part:{:.1f}%\">{}</td>", part, html);
}

std::string client_row(const std::string& client, const ClientTotal& total, const LargestTotals& largest,
                       bool several_rounds) {
  std::string row = fmt::format("<tr><th scope=\"row\">{}</th>", escape_markup(client));
  if (several_rounds) row += fmt::format("<td>{}</td>", total.rounds);
  row += part_cell(static_cast<double>(total.samples), largest.samples, exact_count(total.samples));
  const auto bytes = static_cast<double>(total.upload_bytes);
  row += part_cell(bytes, largest.upload_bytes, bytes_html(bytes));
  const std::string_view reused =
      total.reused > 0 ? "<span title=\"reused from an earlier run\">↺</span> " : "";
  row += part_cell(total.seconds, largest.seconds, std::string(reused) + seconds_html(total.seconds));
  return row + "</tr>\n";
}

}  // namespace

std::string card(std::string_view heading, std::string_view body, bool is_wide) {
  return fmt::format("<section class=\"card{}\"><h3>{}</h3>\n{}</section>\n", is_wide ? " wide" : "", heading,
                     body);
}

std::string costs_card(const RunFolder& run) {
  const RunSummary& s = run.summary;
  std::string rows = cost_row("Upload, a client and round", s.upload_bytes_per_client, bytes_html);
  rows += cost_row("The same for all classes, not coded", s.upload_bytes_raw, bytes_html);
  rows += cost_row("Download, a client and round", s.download_bytes_per_client, bytes_html);
  rows += cost_row("Upload, all clients and rounds", s.total_upload_bytes, bytes_html);
  rows += cost_row("Model as deployed", s.model_bytes, bytes_html);
  rows += cost_row("Bit operations, a prediction", s.binary_ops, count_html);
  rows += cost_row("Floating-point operations, a prediction", s.flops, count_html);
  rows += cost_row("Training samples a second", s.train_samples_per_second, count_html);
  rows += cost_row("Wall time", s.wall_seconds, seconds_html);
  rows += cost_row("Peak memory", s.peak_rss_bytes, bytes_html);
  const std::string bars = time_bars(s);
  if (rows.empty() && bars.empty()) return "";
  return card("Costs",
              fmt::format("<div class=\"stack\">{}<table class=\"costs\"><tbody>{}</tbody></table></div>",
                          bars, rows));
}

std::string clients_card(const RunFolder& run, bool is_wide) {
  if (run.clients.empty()) return "";
  const auto clients = totals(run.clients);
  const bool several_rounds = run.rounds.size() > 1;
  LargestTotals largest;
  for (const auto& [client, total] : clients) {
    largest.samples = std::max(largest.samples, static_cast<double>(total.samples));
    largest.upload_bytes = std::max(largest.upload_bytes, static_cast<double>(total.upload_bytes));
    largest.seconds = std::max(largest.seconds, total.seconds);
  }
  std::string rows;
  for (const auto& [client, total] : clients) rows += client_row(client, total, largest, several_rounds);
  const std::string head = fmt::format(
      "<th scope=\"col\">client</th>{}<th scope=\"col\">samples</th><th scope=\"col\">upload</th>"
      "<th scope=\"col\">training</th>",
      several_rounds ? "<th scope=\"col\">rounds</th>" : "");
  return card("Clients", scrolled_table("clients", head, rows), is_wide);
}

std::string notes_card(const RunFolder& run) {
  if (run.summary.notes.empty()) return "";
  std::string items;
  for (const std::string& note : run.summary.notes)
    items += fmt::format("<li>{}</li>\n", escape_markup(note));
  return card("Notes", fmt::format("<ul>{}</ul>", items));
}

std::string partition_card(const RunFolder& run) {
  const RunSummary& s = run.summary;
  if (s.client_class_counts.empty()) return "";
  std::string body;
  if (!s.partition.empty()) body = fmt::format("<p>{}</p>", escape_markup(s.partition));
  body += picture(partition_picture(s.client_class_counts, s.class_names, "Samples by client and class"));
  return card("Who holds what", body, is_wide_heat_map(s.client_class_counts.size()));
}

std::string confusion_card(const RunFolder& run) {
  const RunSummary& s = run.summary;
  if (s.confusion_matrix.empty()) return "";
  return card("Confusion matrix",
              "<p>Test samples; what was mistaken stands out in the second colour</p>" +
                  picture(confusion_picture(s.confusion_matrix, s.class_names, "Confusion matrix")),
              is_wide_heat_map(s.confusion_matrix.size()));
}

std::string clauses_card(const RunFolder& run) {
  const size_t per_class = class_count(run.machines) < kManyClasses ? kClausesPerClass : 1;
  const std::string pictures = clause_pictures(run.machines, run.summary.class_names, per_class);
  if (pictures.empty()) return "";
  return card("Strongest clauses",
              "<p class=\"key\"><span><i class=\"swatch one\"></i>must be 1</span>"
              "<span><i class=\"swatch zero\"></i>must be 0</span><span><i class=\"swatch\"></i>either</span>"
              "<span><i class=\"swatch both\"></i>both at once: never fires</span>"
              "<span><i class=\"swatch where\"></i>where in the image the patch may lie</span></p>"
              "<div class=\"clause-grid\">" +
                  pictures + "</div>",
              true);
}

std::string recipe_card(const RunFolder& run) {
  if (run.recipe.empty()) return "";
  return fmt::format(
      "<section class=\"card wide long\"><details><summary>Recipe, as "
      "resolved</summary><pre>{}</pre></details></section>\n",
      escape_markup(run.recipe));
}

}  // namespace bitfed
