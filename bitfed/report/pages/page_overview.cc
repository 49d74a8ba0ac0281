#include "bitfed/report/pages/page_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bitfed/report/charts/charts.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"
#include "bitfed/report/pages/comparison.h"
#include "bitfed/report/pages/personal_results.h"

namespace bitfed {
namespace {

std::string with_exact(const std::string& text, const std::string& exact) {
  return fmt::format("<span title=\"{}\">{}</span>", escape_markup(exact), escape_markup(text));
}

std::string exact_of(double value, std::string_view unit) {
  if (unit == "bytes" && value >= 0) return exact_count(static_cast<uint64_t>(value)) + " bytes";
  return exact_number(value) + (unit.empty() ? "" : " ") + std::string(unit);
}

// "in all 480 KB"; empty where there is nothing to say.
std::string note(std::string_view format, const std::optional<double>& value, std::string (*text)(double)) {
  return value ? fmt::format(fmt::runtime(format), text(*value)) : "";
}

template <typename T>
std::optional<double> as_number(const std::optional<T>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::vector<Figure> figures_of_one(const RunSummary& summary) {
  const std::optional<double> validation = summary.validation_accuracy;
  std::vector<Figure> figures = {
      {"Accuracy", fraction_html(summary.accuracy),
       validation ? note("{} on validation data", validation, percent) : "on test data"},
      {"Upload per client", bytes_html(as_number(summary.upload_bytes_per_client)),
       note(summary.exchanges ? "{} from all clients" : "per round; {} in all",
            as_number(summary.total_upload_bytes), human_bytes)},
      {"Model size", bytes_html(as_number(summary.model_bytes)),
       note("{} bit operations per prediction", as_number(summary.binary_ops), human_count)},
      {"Time", seconds_html(summary.wall_seconds),
       note("training, summed: {}", summary.train_seconds, human_seconds)},
  };
  if (summary.epsilon) {
    figures.insert(figures.begin() + 1,
                   {"Epsilon", fmt::format("{:.3g}", *summary.epsilon),
                    note("differential privacy, delta {}", summary.delta, exact_number)});
  }
  if (summary.local_accuracy_mean) {
    figures.insert(figures.begin() + 1, {"Own models", fraction_html(summary.local_accuracy_mean),
                                         fmt::format("mean over {}", counted_clients(summary))});
  }
  return figures;
}

std::vector<Figure> best_figures(const std::vector<RunFolder>& runs) {
  const std::vector<std::string> labels = run_labels(runs);
  std::vector<Figure> figures;
  const auto add = [&](const char* title, std::string_view quantity_name) {
    for (const ComparedQuantity& quantity : compared_quantities()) {
      if (quantity.name != quantity_name) continue;
      const std::vector<size_t> best = best_runs(runs, quantity);
      if (best.empty()) continue;
      const double value = *quantity.value(runs[best[0]]);
      figures.push_back(
          {title, with_exact(quantity.text(value), exact_of(value, quantity.unit)),
           best.size() == 1 ? labels[best[0]] : fmt::format("{} of {} runs", best.size(), runs.size())});
    }
  };
  add("Best accuracy", "accuracy");
  add("Least upload per client", "upload / client");
  add("Smallest model", "model");
  add("Shortest time", "wall time");
  return figures;
}

// The best stands out, unless it is all of them.
std::string compared_cell(const std::vector<RunFolder>& runs, size_t index,
                          const ComparedQuantity& quantity) {
  const std::optional<double> value = quantity.value(runs[index]);
  if (!value) return "<td>–</td>";
  const std::vector<size_t> best = best_runs(runs, quantity);
  const bool is_best = best.size() < runs.size() && std::find(best.begin(), best.end(), index) != best.end();
  return fmt::format("<td{}>{}</td>", is_best ? " class=\"best\"" : "",
                     with_exact(quantity.text(*value), exact_of(*value, quantity.unit)));
}

bool has_curve(const RunFolder& run) {
  return std::count_if(run.rounds.begin(), run.rounds.end(),
                       [](const RoundFinished& round) { return round.scores.has_value(); }) > 1;
}

std::optional<double> accuracy_of(const RoundFinished& round) {
  return round.scores ? std::optional(round.scores->accuracy) : std::nullopt;
}

std::optional<double> own_accuracy_of(const RoundFinished& round) {
  return round.scores ? round.scores->local_accuracy_mean : std::nullopt;
}

Series curve_of(const RunFolder& run, const std::string& name,
                std::optional<double> (*value)(const RoundFinished&) = accuracy_of) {
  Series series{name, {}};
  for (const RoundFinished& round : run.rounds) {
    // A curve leads from one round that was evaluated to the next.
    if (const auto accuracy = value(round))
      series.points.push_back({static_cast<double>(round.round), *accuracy});
  }
  return series;
}

// For one run with personal models: their curve too.
std::vector<Series> curves_of_one(const RunFolder& run, const std::string& label) {
  const bool is_personal = std::any_of(run.rounds.begin(), run.rounds.end(), [](const RoundFinished& round) {
    return own_accuracy_of(round).has_value();
  });
  if (!is_personal) return {curve_of(run, label)};
  return {curve_of(run, "global model"), curve_of(run, "own models, mean", own_accuracy_of)};
}

Bar accuracy_bar(const std::string& label, double accuracy, size_t colour) {
  return {label, accuracy, percent(accuracy), fmt::format("{}: {}", label, exact_number(accuracy)), colour};
}

// The accuracies of one run, for comparison with each other.
std::vector<Bar> bars_of_one(const RunSummary& summary) {
  std::vector<Bar> bars;
  if (summary.accuracy) bars.push_back(accuracy_bar("Test data", *summary.accuracy, 0));
  if (summary.validation_accuracy)
    bars.push_back(accuracy_bar("Validation data", *summary.validation_accuracy, 0));
  if (summary.f1_micro) bars.push_back(accuracy_bar("F1, micro", *summary.f1_micro, 0));
  if (summary.f1_macro) bars.push_back(accuracy_bar("F1, macro", *summary.f1_macro, 0));
  if (summary.balanced_accuracy)
    bars.push_back(accuracy_bar("Balanced accuracy", *summary.balanced_accuracy, 0));
  if (summary.local_accuracy_mean) {
    bars.push_back(accuracy_bar("Own models, mean", *summary.local_accuracy_mean, 1));
  }
  return bars;
}

}  // namespace

std::string bytes_html(std::optional<double> bytes) {
  return bytes ? with_exact(human_bytes(*bytes), exact_of(*bytes, "bytes")) : "–";
}

std::string seconds_html(std::optional<double> seconds) {
  return seconds ? with_exact(human_seconds(*seconds), exact_of(*seconds, "seconds")) : "–";
}

std::string fraction_html(std::optional<double> fraction) {
  return fraction ? with_exact(percent(*fraction), exact_number(*fraction)) : "–";
}

std::string count_html(std::optional<double> count) {
  return count ? with_exact(human_count(*count), exact_number(*count)) : "–";
}

std::string figure_tiles(const std::vector<Figure>& figures) {
  std::string html;
  for (const Figure& figure : figures) {
    html += fmt::format("<dl class=\"tile\"><dt>{}</dt><dd class=\"value\">{}</dd>",
                        escape_markup(figure.name), figure.value);
    if (!figure.note.empty()) html += fmt::format("<dd class=\"note\">{}</dd>", escape_markup(figure.note));
    html += "</dl>\n";
  }
  return figures.empty() ? "" : "<div class=\"tiles\">\n" + html + "</div>\n";
}

std::vector<Figure> headline_figures(const std::vector<RunFolder>& runs) {
  return runs.size() == 1 ? figures_of_one(runs[0].summary) : best_figures(runs);
}

std::string comparison_table(const std::vector<RunFolder>& runs) {
  std::string head = "<th scope=\"col\">run</th>";
  const std::vector<ComparedQuantity> quantities = page_quantities(runs);
  for (const ComparedQuantity& q : quantities) head += fmt::format("<th scope=\"col\">{}</th>", q.name);
  std::string rows;
  const std::vector<std::string> labels = run_labels(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    rows +=
        fmt::format("<tr><th scope=\"row\"><a href=\"#run-{}\">{}</a></th>", i + 1, escape_markup(labels[i]));
    for (const ComparedQuantity& quantity : quantities) rows += compared_cell(runs, i, quantity);
    rows += "</tr>\n";
  }
  return scrolled_table("runs", head, rows);
}

std::string seeds_table(const std::vector<RunFolder>& runs) {
  const std::vector<SeedGroup> groups = seed_groups(runs);
  if (groups.empty()) return "";
  std::string head = "<th scope=\"col\">recipe</th><th scope=\"col\">seeds</th>";
  const std::vector<ComparedQuantity> quantities = page_quantities(runs);
  for (const ComparedQuantity& q : quantities) head += fmt::format("<th scope=\"col\">{}</th>", q.name);
  std::string rows;
  for (const SeedGroup& group : groups) {
    rows += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td>", escape_markup(group.label),
                        group.runs.size());
    for (const ComparedQuantity& quantity : quantities)
      rows += fmt::format("<td>{}</td>", escape_markup(spread_text(runs, group, quantity)));
    rows += "</tr>\n";
  }
  return scrolled_table("runs", head, rows);
}

std::string accuracy_chart(const std::vector<RunFolder>& runs) {
  const std::vector<std::string> labels = run_labels(runs);
  if (std::any_of(runs.begin(), runs.end(), has_curve)) {
    LineChart chart{"Accuracy over rounds", "round", {}};
    if (runs.size() == 1) chart.series = curves_of_one(runs[0], labels[0]);
    for (size_t i = 0; runs.size() > 1 && i < runs.size(); ++i)
      chart.series.push_back(curve_of(runs[i], labels[i]));
    return line_chart(chart);
  }
  if (runs.size() == 1) return bar_chart("Accuracy", bars_of_one(runs[0].summary), 1);
  std::vector<Bar> bars;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].summary.accuracy) bars.push_back(accuracy_bar(labels[i], *runs[i].summary.accuracy, i));
  }
  return bar_chart("Accuracy of the runs", bars, 1);
}

std::string epsilon_chart(const std::vector<RunFolder>& runs) {
  const std::vector<std::string> labels = run_labels(runs);
  LineChart chart{"Epsilon over rounds", "round", {}, /*is_fraction=*/false};
  for (size_t i = 0; i < runs.size(); ++i) {
    Series series = curve_of(runs[i], labels[i], [](const RoundFinished& round) { return round.epsilon; });
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart.series.empty() ? "" : line_chart(chart);
}

std::string upload_chart(const std::vector<RunFolder>& runs) {
  const std::vector<std::string> labels = run_labels(runs);
  std::vector<Bar> bars;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::optional<double> bytes = as_number(runs[i].summary.total_upload_bytes);
    if (bytes) bars.push_back({labels[i], *bytes, human_bytes(*bytes), exact_of(*bytes, "bytes"), i});
  }
  return bars.empty() ? "" : bar_chart("Upload of the runs", bars);
}

}  // namespace bitfed
