#include "bitfed/report/pages/page.h"

#include <fmt/format.h>

#include "bitfed/report/markup.h"
#include "bitfed/report/pages/comparison.h"
#include "bitfed/report/pages/page_parts.h"

namespace bitfed {
namespace {

constexpr size_t kMaxOpenRuns = 3;  // with more runs their details start folded

std::string fact(const std::string& text) {
  return text.empty() ? "" : fmt::format("<span>{}</span>", escape_markup(text));
}

std::string counted(const std::optional<uint64_t>& count, std::string_view noun) {
  return count ? fmt::format("{} {}{}", *count, noun, *count == 1 ? "" : "s") : "";
}

// "fedtmos · ctm · fashion-mnist · Dir(0.1), 10 clients · 1 round".
std::string facts(const RunSummary& summary) {
  std::string html =
      fact(summary.method) + fact(summary.model) + fact(summary.dataset) + fact(summary.partition);
  // Most descriptions of a partition already say how many clients.
  if (summary.partition.find("client") == std::string::npos) html += fact(counted(summary.clients, "client"));
  html += fact(counted(summary.rounds, "round"));
  return fmt::format("<p class=\"facts\">{}</p>\n", html);
}

// Two cards one above the other, in the place of one.
std::string column(const std::string& upper, const std::string& lower) {
  if (upper.empty() && lower.empty()) return "";
  return fmt::format("<div class=\"column\">{}{}</div>\n", upper, lower);
}

// `first` stands above the notes, next to the costs.
std::string cards_of(const RunFolder& run, const std::string& first) {
  size_t halves = 0;
  std::string html;
  for (const std::string& part : {column(first, notes_card(run)), costs_card(run), gains_card(run),
                                  column(radio_card(run), people_card(run)), chosen_card(run),
                                  partition_card(run), confusion_card(run), samples_card(run)}) {
    // A card opens with its class; those of half a width pair up.
    if (!part.empty() && part.find("card wide") == std::string::npos) ++halves;
    html += part;
  }
  html += clients_card(run, halves % 2 == 0);
  return fmt::format("<div class=\"cards\">\n{}{}{}</div>\n", html, clauses_card(run), recipe_card(run));
}

std::string section(const RunFolder& run, size_t index, const std::string& label, bool is_open) {
  return fmt::format("<details class=\"run\" id=\"run-{}\"{}><summary>{}</summary>\n{}{}</details>\n",
                     index + 1, is_open ? " open" : "", escape_markup(label), facts(run.summary),
                     cards_of(run, ""));
}

std::string several(const std::vector<RunFolder>& runs) {
  const std::string seeds = seeds_table(runs);
  std::string html =
      fmt::format("<div class=\"cards\">\n{}{}{}</div>\n", card("Comparison", comparison_table(runs), true),
                  seeds.empty() ? "" : card("Seeds: mean ± sample standard deviation", seeds, true),
                  chart_card("Accuracy", accuracy_chart(runs)) +
                      chart_card("Privacy spent: epsilon", epsilon_chart(runs)) +
                      chart_card("Upload, all clients and rounds", upload_chart(runs)));
  const std::vector<std::string> labels = run_labels(runs);
  for (size_t i = 0; i < runs.size(); ++i)
    html += section(runs[i], i, labels[i], runs.size() <= kMaxOpenRuns);
  return html;
}

std::string origin(const RunFolder& run, const std::string& label, bool with_label) {
  const RunSummary& s = run.summary;
  std::string html = with_label ? fact(label) : "";
  if (!s.version.empty()) html += fact("bitfed " + s.version);
  if (s.device) html += fact(*s.device);
  html += fact(s.isa) + fact(counted(s.threads, "thread"));
  if (s.seed) html += fact(fmt::format("seed {}", *s.seed));
  if (!s.model_sha256.empty()) {
    html += fmt::format("<span>model <code>{}</code></span>", escape_markup(s.model_sha256));
  }
  return fmt::format("<p class=\"facts\">{}</p>\n", html);
}

std::string footer(const std::vector<RunFolder>& runs) {
  const std::vector<std::string> labels = run_labels(runs);
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) html += origin(runs[i], labels[i], runs.size() > 1);
  return fmt::format("<footer>\n{}</footer>\n", html);
}

std::string header(const std::vector<RunFolder>& runs, const std::string& title) {
  std::string html =
      fmt::format("<p class=\"eyebrow\">bitfed report</p>\n<h1>{}</h1>\n", escape_markup(title));
  if (runs.size() == 1) html += facts(runs[0].summary);
  return fmt::format("<header>\n{}</header>\n", html);
}

}  // namespace

std::string report_page(const std::vector<RunFolder>& runs) {
  const std::string title =
      runs.size() == 1 ? runs[0].summary.name : fmt::format("{} runs compared", runs.size());
  const std::string cards =
      runs.size() == 1 ? cards_of(runs[0], chart_card("Accuracy", accuracy_chart(runs)) +
                                               chart_card("Privacy spent: epsilon", epsilon_chart(runs)))
                       : several(runs);
  return html_document(title, fmt::format("{}<main>\n{}{}</main>\n{}", header(runs, title),
                                          figure_tiles(headline_figures(runs)), cards, footer(runs)));
}

}  // namespace bitfed
