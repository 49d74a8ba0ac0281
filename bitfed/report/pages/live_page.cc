#include "bitfed/report/pages/live_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "bitfed/report/charts/charts.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"
#include "bitfed/report/pages/page_parts.h"

namespace bitfed {
namespace {

using Client = FederationStatus::Client;
using Round = FederationStatus::Round;

template <typename T>
std::optional<double> as_number(const std::optional<T>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::string curve(const std::vector<Round>& rounds) {
  Series accuracy{"accuracy", {}};
  for (const Round& round : rounds) {
    if (round.accuracy) accuracy.points.push_back({static_cast<double>(round.round), *round.accuracy});
  }
  if (accuracy.points.size() < 2) return "";
  return chart_card("Accuracy", line_chart({"Accuracy after each round", "round", {accuracy}}));
}

std::string epsilon_curve(const std::vector<Round>& rounds) {
  Series epsilon{"epsilon", {}};
  for (const Round& round : rounds) {
    if (round.epsilon) epsilon.points.push_back({static_cast<double>(round.round), *round.epsilon});
  }
  if (epsilon.points.size() < 2) return "";
  return chart_card("Privacy spent: epsilon",
                    line_chart({"Epsilon after each round", "round", {epsilon}, /*is_fraction=*/false}));
}

// Days until a certificate expires, marked in its last 30 days.
std::string expiry_html(const std::optional<int64_t>& seconds) {
  if (!seconds) return "";
  const int64_t days = *seconds / 86400;
  if (*seconds <= 0) return "<strong>expired</strong>";
  return days < 30 ? fmt::format("<strong>{} days</strong>", days) : fmt::format("{} days", days);
}

std::string clients(const FederationStatus& status) {
  std::string rows;
  for (const Client& client : status.clients_known) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        escape_markup(client.name), client.client, escape_markup(client.state),
                        count_html(as_number(client.samples)),
                        client.last_round ? std::to_string(*client.last_round) : "",
                        expiry_html(client.certificate_seconds));
  }
  if (rows.empty()) return card("Clients", "<p>None has come yet.</p>");
  return card("Clients", scrolled_table("people",
                                        "<th>name</th><th>number</th><th>state</th><th>samples</th>"
                                        "<th>last round</th><th>certificate expires in</th>",
                                        rows));
}

std::string faults(const FederationStatus& status) {
  std::string rows;
  for (auto fault = status.faults.rbegin(); fault != status.faults.rend(); ++fault) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escape_markup(fault->kind),
                        escape_markup(fault->name), escape_markup(shorten(fault->text, 160)));
  }
  if (rows.empty()) return card("Faults", "<p>None.</p>");
  return card("Faults", scrolled_table("runs", "<th>kind</th><th>client</th><th>what</th>", rows), true);
}

std::string figures(const FederationStatus& status, const FederationStatus::About& about) {
  const auto ready = std::count_if(status.clients_known.begin(), status.clients_known.end(),
                                   [](const Client& client) { return client.state == "ready"; });
  const Round* last = status.curve.empty() ? nullptr : &status.curve.back();
  std::vector<Figure> tiles = {
      {"Round", fmt::format("{} of {}", status.round, about.rounds), status.phase},
      {"Clients", fmt::format("{} of {}", ready, about.clients),
       fmt::format("waiting for {}", status.waiting_for)},
      {"Accuracy", fraction_html(last != nullptr ? last->accuracy : std::nullopt), ""},
      {"Last round", seconds_html(last != nullptr ? std::optional(last->seconds) : std::nullopt), ""},
      {"Uploaded", bytes_html(static_cast<double>(status.upload_bytes)), "since the server began"}};
  if (last != nullptr && last->epsilon)
    tiles.push_back({"Epsilon", fmt::format("{:.3g}", *last->epsilon), "spent by differential privacy"});
  if (status.server_certificate_seconds)
    tiles.push_back(
        {"Server's certificate", expiry_html(status.server_certificate_seconds), "until it expires"});
  return figure_tiles(tiles);
}

}  // namespace

std::string live_page(const FederationStatus& status) {
  const FederationStatus::About about = status.about.value_or(FederationStatus::About());
  const std::string body = fmt::format(
      "<header><p class=\"eyebrow\">bitfed serve</p><h1>{}</h1><p "
      "class=\"facts\"><span>{}</span><span>{}</span>"
      "<span>federation {}</span></p></header>\n<main>{}<div class=\"cards\">{}{}{}{}</div></main>\n",
      escape_markup(about.name), escape_markup(about.method), escape_markup(about.dataset),
      escape_markup(about.federation), figures(status, about), curve(status.curve),
      epsilon_curve(status.curve), clients(status), faults(status));
  std::string page = html_document(about.name, body);
  // The page is whole each time; nothing on it needs a script.
  const size_t head = page.find("<head>");
  if (head != std::string::npos) page.insert(head + 6, "<meta http-equiv=\"refresh\" content=\"3\">");
  return page;
}

}  // namespace bitfed
