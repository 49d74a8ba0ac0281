#include "bitfed/report/pages/page_parts.h"

#include <fmt/format.h>

#include "bitfed/report/charts/charts.h"
#include "bitfed/report/charts/clause_picture.h"
#include "bitfed/report/charts/partition_picture.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"
#include "bitfed/report/pages/personal_results.h"

namespace bitfed {
namespace {

constexpr size_t kClausesPerClass = 3;
constexpr size_t kManyClasses = 20;  // from here on one clause per class, to keep the page short

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

}  // namespace

std::string card(std::string_view heading, std::string_view body, bool is_wide) {
  return fmt::format("<section class=\"card{}\"><h3>{}</h3>\n{}</section>\n", is_wide ? " wide" : "", heading,
                     body);
}

std::string costs_card(const RunFolder& run) {
  const RunSummary& s = run.summary;
  const std::string of = s.exchanges ? "" : " and round";
  std::string rows = cost_row("Upload per client" + of, s.upload_bytes_per_client, bytes_html);
  rows +=
      cost_row("Upload per client before the first round", s.preparation_upload_bytes_per_client, bytes_html);
  rows += cost_row("Upload for all classes, not coded", s.upload_bytes_raw, bytes_html);
  rows += cost_row("Download per client" + of, s.download_bytes_per_client, bytes_html);
  rows += cost_row("Upload, all clients and rounds", s.total_upload_bytes, bytes_html);
  rows += cost_row("Model as deployed", s.model_bytes, bytes_html);
  rows += cost_row("Bit operations per prediction", s.binary_ops, count_html);
  rows += cost_row("Floating-point operations per prediction", s.flops, count_html);
  rows += cost_row("Model, as the FedBNN paper counts", s.model_bytes_paper, bytes_html);
  rows += cost_row("Operations, as the FedBNN paper counts", s.flops_paper, count_html);
  rows += cost_row("Training samples per second", s.train_samples_per_second, count_html);
  rows += cost_row("Wall time", s.wall_seconds, seconds_html);
  rows += cost_row("Peak memory", s.peak_rss_bytes, bytes_html);
  const std::string bars = time_bars(s);
  if (rows.empty() && bars.empty()) return "";
  return card("Costs",
              fmt::format("<div class=\"stack\">{}<table class=\"costs\"><tbody>{}</tbody></table></div>",
                          bars, rows));
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
  body += picture(
      partition_picture(s.client_class_counts, s.class_names, "Samples by client and class", people_of(s)));
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
  const std::string pictures = clause_pictures(run.machines, run.summary.class_names, per_class, run.columns);
  if (pictures.empty()) return "";
  // The clauses of a table are text, which needs no key.
  const bool has_figures = pictures.find("<figure>") != std::string::npos;
  const std::string key =
      has_figures
          ? "<p class=\"key\"><span><i class=\"swatch one\"></i>must be 1</span>"
            "<span><i class=\"swatch zero\"></i>must be 0</span><span><i class=\"swatch\"></i>either</span>"
            "<span><i class=\"swatch both\"></i>both at once: never fires</span>"
            "<span><i class=\"swatch where\"></i>where in the image the patch may lie</span></p>"
          : "";
  return card("Strongest clauses", key + "<div class=\"clause-grid\">" + pictures + "</div>", true);
}

std::string samples_card(const RunFolder& run) {
  constexpr size_t kMaxBytes = 4 << 20;
  if (run.samples.empty() || run.samples.size() > kMaxBytes) return "";
  return card("Samples",
              "<p>The first training samples of every class, a row for each</p>"
              "<div class=\"picture\"><img class=\"samples\" alt=\"Training samples by class\" "
              "src=\"data:image/png;base64," +
                  base64(run.samples) + "\"/></div>");
}

std::string recipe_card(const RunFolder& run) {
  if (run.recipe.empty()) return "";
  return fmt::format(
      "<section class=\"card wide long\"><details><summary>Recipe, as "
      "resolved</summary><pre>{}</pre></details></section>\n",
      escape_markup(run.recipe));
}

}  // namespace bitfed
