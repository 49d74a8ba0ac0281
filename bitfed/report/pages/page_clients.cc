#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"
#include "bitfed/report/pages/page_parts.h"
#include "bitfed/report/pages/personal_results.h"

namespace bitfed {
namespace {

// A client's records over all rounds. Round 0, the preparation, is none of them.
struct ClientTotal {
  size_t rounds = 0;
  size_t reused = 0;
  uint64_t samples = 0;
  uint64_t upload_bytes = 0;
  double seconds = 0;
};

std::map<uint32_t, ClientTotal> totals(const std::vector<ClientFinished>& records) {
  std::map<uint32_t, ClientTotal> clients;
  for (const ClientFinished& record : records) {
    ClientTotal& total = clients[record.client];
    total.rounds += record.round > 0 ? 1 : 0;
    total.reused += record.origin == Origin::kReused ? 1 : 0;
    total.samples = std::max(total.samples, record.samples);
    total.upload_bytes += record.upload_bytes;
    total.seconds += record.seconds;
  }
  return clients;
}

// The labels of those clients that are persons.
std::map<uint64_t, std::string> person_labels(const RunSummary& summary) {
  std::map<uint64_t, std::string> labels;
  for (const ClientAccuracy& outcome : summary.client_results) {
    if (outcome.name) labels[outcome.client] = client_label(outcome);
  }
  return labels;
}

struct LargestTotals {
  double samples = 0;
  double upload_bytes = 0;
  double seconds = 0;
};

// The value, in front of a bar for its fraction of the largest one.
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

std::string clients_card(const RunFolder& run, bool is_wide) {
  if (run.clients.empty()) return "";
  const auto clients = totals(run.clients);
  const bool several_rounds = std::any_of(run.rounds.begin(), run.rounds.end(),
                                          [](const RoundFinished& record) { return record.round > 1; });
  LargestTotals largest;
  for (const auto& [client, total] : clients) {
    largest.samples = std::max(largest.samples, static_cast<double>(total.samples));
    largest.upload_bytes = std::max(largest.upload_bytes, static_cast<double>(total.upload_bytes));
    largest.seconds = std::max(largest.seconds, total.seconds);
  }
  std::string rows;
  const std::map<uint64_t, std::string> labels = person_labels(run.summary);
  size_t shown = 0;
  for (const auto& [client, total] : clients) {
    if (++shown > kMaxTableRows) break;
    const auto label = labels.find(client);
    rows += client_row(label == labels.end() ? std::to_string(client) : label->second, total, largest,
                       several_rounds);
  }
  const std::string head = fmt::format(
      "<th scope=\"col\">client</th>{}<th scope=\"col\">samples</th><th scope=\"col\">upload</th>"
      "<th scope=\"col\">training</th>",
      several_rounds ? "<th scope=\"col\">rounds</th>" : "");
  return card("Clients",
              rows_left_out(std::min(clients.size(), kMaxTableRows), clients.size()) +
                  scrolled_table("clients", head, rows),
              is_wide);
}

}  // namespace bitfed
