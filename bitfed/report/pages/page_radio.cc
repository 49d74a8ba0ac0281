#include <fmt/format.h>

#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/page_parts.h"

namespace bitfed {
namespace {

constexpr uint64_t kLargestUpload = 1'000'000;  // bytes; larger ones are not for such a radio

std::string radio_row(std::string_view css_class, const std::string& name, double upload, double download,
                      std::string (*html)(std::optional<double>)) {
  return fmt::format("<tr class=\"{}\"><th scope=\"row\">{}</th><td>{}</td><td>{}</td></tr>\n", css_class,
                     name, html(upload), html(download));
}

// The messages of `rounds` rounds: their size, and the time that they take at each rate.
std::string radio_rows(const RunSummary& summary, const std::string& title, double rounds) {
  std::string rows = radio_row("size", title, rounds * static_cast<double>(*summary.upload_bytes_per_client),
                               rounds * static_cast<double>(*summary.download_bytes_per_client), bytes_html);
  for (const Airtime& airtime : summary.airtime) {
    const std::string rate = human_bit_rate(static_cast<double>(airtime.bits_per_second));
    rows += radio_row("time", "at " + rate, rounds * airtime.upload_seconds,
                      rounds * airtime.download_seconds, seconds_html);
  }
  return rows;
}

}  // namespace

std::string radio_card(const RunFolder& run) {
  const RunSummary& s = run.summary;
  if (s.airtime.empty() || !s.upload_bytes_per_client || !s.download_bytes_per_client) return "";
  if (*s.upload_bytes_per_client >= kLargestUpload) return "";
  std::string rows = radio_rows(s, s.exchanges ? "All exchanges" : "One round", 1);
  if (const uint64_t rounds = s.rounds.value_or(1); rounds > 1 && !s.exchanges)
    rows += radio_rows(s, fmt::format("All {} rounds", rounds), static_cast<double>(rounds));
  return card("Over a slow radio",
              "<p>A client that takes part in every round; the bits alone, without headers and pauses</p>"
              "<table class=\"costs radio\"><thead><tr><th scope=\"col\"></th><th scope=\"col\">upload</th>"
              "<th scope=\"col\">download</th></tr></thead>\n<tbody>" +
                  rows + "</tbody></table>");
}

}  // namespace bitfed
