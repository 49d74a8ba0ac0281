#include <fmt/format.h>

#include <algorithm>

#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"
#include "bitfed/report/pages/page_parts.h"
#include "bitfed/report/pages/personal_pictures.h"
#include "bitfed/report/pages/personal_results.h"

namespace bitfed {
namespace {

constexpr size_t kMaxRows = 60;  // of the picture of all clients: half of them from each end

// "For 21 of 30 people the own model is the better one, for 8 the global model; for 1 both are the same."
std::string gains_text(const RunSummary& summary, const std::vector<ClientAccuracy>& clients) {
  const auto count = [&](auto is_meant) {
    return std::count_if(clients.begin(), clients.end(),
                         [&](const ClientAccuracy& client) { return is_meant(*gain_of(client)); });
  };
  const auto same = count([](double gain) { return gain == 0; });
  std::string text = fmt::format("For {} of {} the own model is the better one, for {} the global model",
                                 count([](double gain) { return gain > 0; }), counted_clients(summary),
                                 count([](double gain) { return gain < 0; }));
  if (same > 0) text += fmt::format("; for {} both are the same", same);
  const bool are_people = clients.front().name.has_value();
  text += fmt::format(". Evaluated on {}; at the right the difference in percentage points.",
                      are_people ? "each person's own test rows" : "the same test data");
  return text;
}

std::string accuracy_cells(const ClientAccuracy& client) {
  if (client.test_samples == 0) return "<td class=\"none\" colspan=\"3\">no test rows</td>";
  const std::optional<double> gain = gain_of(client);
  const std::string_view tone = !gain || *gain == 0 ? "" : *gain > 0 ? "better" : "worse";
  return fmt::format("<td>{}</td><td>{}</td><td class=\"{}\">{}</td>", fraction_html(client.global_accuracy),
                     fraction_html(client.local_accuracy), tone, gain ? signed_points(*gain) : "–");
}

// The row's name without the word that heads its column.
std::string person_row(const ClientAccuracy& client) {
  const std::string name = client.name.value_or(std::to_string(client.client));
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>{}</tr>\n", escape_markup(name),
                     exact_count(client.samples), exact_count(client.test_samples), accuracy_cells(client));
}

const std::vector<uint32_t>* counts_of(const RunSummary& summary, const ClientAccuracy& client) {
  return client.client < summary.client_class_counts.size() ? &summary.client_class_counts[client.client]
                                                            : nullptr;
}

uint32_t largest_count(const RunSummary& summary, const std::vector<ClientAccuracy>& clients) {
  uint32_t largest = 0;
  for (const ClientAccuracy& client : clients) {
    const std::vector<uint32_t>* counts = counts_of(summary, client);
    if (counts == nullptr || counts->empty()) continue;
    largest = std::max(largest, *std::max_element(counts->begin(), counts->end()));
  }
  return largest;
}

}  // namespace

std::string gains_card(const RunFolder& run) {
  std::vector<ClientAccuracy> clients = by_gain(run.summary.client_results);
  if (clients.empty()) return "";
  std::string text = gains_text(run.summary, clients);
  if (clients.size() > kMaxRows) {
    text += fmt::format(" Shown are the {0} who gain most and the {0} who gain least.", kMaxRows / 2);
    clients.erase(clients.begin() + kMaxRows / 2, clients.end() - kMaxRows / 2);
  }
  return card("Who gains from a model of their own",
              fmt::format("<p>{}</p><div class=\"picture chart\">{}</div>", text, gains_picture(clients)));
}

std::string people_card(const RunFolder& run) {
  if (run.summary.client_results.empty()) return "";
  std::string rows;
  const std::vector<ClientAccuracy>& all = run.summary.client_results;
  const size_t shown = std::min(all.size(), kMaxTableRows);
  for (size_t i = 0; i < shown; ++i) rows += person_row(all[i]);
  const bool are_people = run.summary.client_results.front().name.has_value();
  return card(
      "Everyone",
      rows_left_out(shown, all.size()) +
          scrolled_table(
              "people",
              fmt::format(
                  "<th scope=\"col\">{}</th><th scope=\"col\">training</th><th scope=\"col\">test</th>"
                  "<th scope=\"col\">global</th><th scope=\"col\">own</th>"
                  "<th scope=\"col\" title=\"percentage points\">difference</th>",
                  are_people ? "person" : "client"),
              rows));
}

std::string chosen_card(const RunFolder& run) {
  const RunSummary& s = run.summary;
  const std::vector<ClientAccuracy> chosen = chosen_clients(s.client_results);
  if (chosen.empty()) return "";
  const uint32_t full = largest_count(s, chosen);
  std::string html;
  for (const ClientAccuracy& client : chosen) {
    const std::vector<uint32_t>* counts = counts_of(s, client);
    html += fmt::format(
        "<div><h4>{}</h4>{}</div>\n", escape_markup(client_label(client)),
        client_picture({client, counts == nullptr ? std::vector<uint32_t>() : *counts, s.class_names, full}));
  }
  const auto judged =
      std::count_if(s.client_results.begin(), s.client_results.end(),
                    [](const ClientAccuracy& client) { return client.local_accuracy.has_value(); });
  const bool is_choice = chosen.size() < static_cast<size_t>(judged);
  const std::string_view rule =
      is_choice ? "the best, the worst, and those a third and two thirds of the way down the list"
                : "all who have one and test rows";
  return card(
      "Chosen devices",
      fmt::format("<p>By the accuracy of their own models: {}</p><div class=\"chosen\">{}</div>", rule, html),
      true);
}

}  // namespace bitfed
