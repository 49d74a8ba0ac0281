#include "bitfed/report/pages/live_page.h"

#include <fmt/format.h>

#include <cmath>

#include "bitfed/report/charts/charts.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"
#include "bitfed/report/pages/page_parts.h"

namespace bitfed {
namespace {

using Json = nlohmann::ordered_json;

std::string text(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return escape_markup(found->is_string() ? found->get<std::string>() : found->dump());
}

std::optional<double> number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::string curve(const Json& rounds) {
  Series accuracy{"accuracy", {}};
  for (const Json& round : rounds) {
    if (const auto value = number(round, "accuracy"))
      accuracy.points.push_back({round["round"].get<double>(), *value});
  }
  if (accuracy.points.size() < 2) return "";
  return chart_card("Accuracy", line_chart({"Accuracy after each round", "round", {accuracy}}));
}

std::string clients(const Json& status) {
  std::string rows;
  for (const Json& client : status["clients_known"]) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                        text(client, "name"), text(client, "client"), text(client, "state"),
                        count_html(number(client, "samples")), text(client, "last_round"));
  }
  if (rows.empty()) return card("Clients", "<p>None has come yet.</p>");
  return card("Clients", scrolled_table("people",
                                        "<th>name</th><th>number</th><th>state</th><th>samples</th>"
                                        "<th>last round</th>",
                                        rows));
}

std::string faults(const Json& status) {
  std::string rows;
  for (auto fault = status["faults"].rbegin(); fault != status["faults"].rend(); ++fault) {
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", text(*fault, "kind"),
                        text(*fault, "name"), escape_markup(shorten(fault->value("text", ""), 160)));
  }
  if (rows.empty()) return card("Faults", "<p>None.</p>");
  return card("Faults", scrolled_table("runs", "<th>kind</th><th>client</th><th>what</th>", rows), true);
}

std::string figures(const Json& status) {
  size_t ready = 0;
  for (const Json& client : status["clients_known"]) ready += client["state"] == "ready" ? 1 : 0;
  std::optional<double> accuracy;
  std::optional<double> seconds;
  if (!status["curve"].empty()) {
    accuracy = number(status["curve"].back(), "accuracy");
    seconds = number(status["curve"].back(), "seconds");
  }
  return figure_tiles({{"Round", fmt::format("{} of {}", text(status, "round"), text(status, "rounds")),
                        text(status, "phase")},
                       {"Clients", fmt::format("{} of {}", ready, text(status, "clients")),
                        fmt::format("waiting for {}", text(status, "waiting_for"))},
                       {"Accuracy", fraction_html(accuracy), ""},
                       {"Last round", seconds_html(seconds), ""},
                       {"Uploaded", bytes_html(number(status, "upload_bytes")), "since the server began"}});
}

}  // namespace

std::string live_page(const Json& status) {
  const std::string name = text(status, "name");
  const std::string body = fmt::format(
      "<header><p class=\"eyebrow\">bitfed serve</p><h1>{}</h1><p "
      "class=\"facts\"><span>{}</span><span>{}</span>"
      "<span>federation {}</span></p></header>\n<main>{}<div class=\"cards\">{}{}{}</div></main>\n",
      name, text(status, "method"), text(status, "dataset"), text(status, "federation"), figures(status),
      curve(status["curve"]), clients(status), faults(status));
  std::string page = html_document(status.value("name", ""), body);
  // The page is whole each time; nothing on it needs a script.
  const size_t head = page.find("<head>");
  if (head != std::string::npos) page.insert(head + 6, "<meta http-equiv=\"refresh\" content=\"3\">");
  return page;
}

}  // namespace bitfed
