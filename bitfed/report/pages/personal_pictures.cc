#include "bitfed/report/pages/personal_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "bitfed/report/charts/charts.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"
#include "bitfed/report/pages/personal_results.h"

namespace bitfed {
namespace {

constexpr double kWidth = 250;
constexpr double kRow = 17;
constexpr double kThickness = 10;
constexpr double kGap = 22;  // above the classes, with their heading
constexpr double kNumbers = 50;
constexpr double kCharacter = 5.9;  // the width of one, about, at the size of the labels
constexpr double kTextSize = 11;
constexpr size_t kLongestLabel = 19;
constexpr size_t kMaxClasses = 24;  // more would make the picture longer than a page

struct MiniBar {
  std::string label;
  double part = 0;  // of the full length
  std::string text;
  std::string tooltip;
  Paint paint;
};

MiniBar accuracy_bar(const char* label, const std::optional<double>& accuracy, size_t colour) {
  const std::string exact = accuracy ? exact_number(*accuracy) : "not measured";
  return {label, accuracy.value_or(0), accuracy ? percent(*accuracy) : "–",
          fmt::format("{}: {}", label, exact), series_paint(colour)};
}

std::vector<MiniBar> class_bars(const ClientPicture& picture) {
  const auto& counts = picture.class_counts;
  const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  std::vector<MiniBar> bars;
  for (size_t i = 0; i < std::min(counts.size(), kMaxClasses); ++i) {
    const std::string name =
        i < picture.class_names.size() ? picture.class_names[i] : fmt::format("class {}", i);
    const double part = static_cast<double>(counts[i]) / std::max(1.0, static_cast<double>(picture.full));
    bars.push_back({name, part, exact_count(counts[i]),
                    fmt::format("{}: {} of {} samples", name, exact_count(counts[i]), exact_count(total)),
                    kMuted});
  }
  return bars;
}

class ClientCanvas {
 public:
  explicit ClientCanvas(const ClientPicture& picture)
      : accuracies_{accuracy_bar("global model", picture.client.global_accuracy, 0),
                    accuracy_bar("own model", picture.client.local_accuracy, 1)},
        classes_(class_bars(picture)),
        left_out_(picture.class_counts.size() - classes_.size()),
        svg_(kWidth, height(), client_label(picture.client)) {}

  std::string draw() {
    double top = 0;
    for (const MiniBar& bar : accuracies_) draw_bar(bar, &top);
    if (classes_.empty()) return svg_.finish();
    svg_.text({0, top + kGap - 5}, "training samples", {.paint = kMuted, .size = kTextSize});
    top += kGap;
    for (const MiniBar& bar : classes_) draw_bar(bar, &top);
    if (left_out_ > 0) {
      svg_.text({0, top + 13}, fmt::format("and {} more classes", left_out_),
                {.paint = kMuted, .size = kTextSize});
    }
    return svg_.finish();
  }

 private:
  double height() const {
    const size_t rows = accuracies_.size() + classes_.size() + (left_out_ > 0 ? 1 : 0);
    return kRow * static_cast<double>(rows) + (classes_.empty() ? 0 : kGap) + 2;
  }

  double left() const {
    size_t characters = 0;
    for (const auto* bars : {&accuracies_, &classes_}) {
      for (const MiniBar& bar : *bars) characters = std::max(characters, character_count(bar.label));
    }
    return kCharacter * static_cast<double>(std::min(characters, kLongestLabel)) + 8;
  }

  void draw_bar(const MiniBar& bar, double* top) {
    const double length = kWidth - left() - kNumbers;
    const double y = *top + (kRow - kThickness) / 2;
    svg_.text({0, *top + 12.5}, shorten(bar.label, kLongestLabel), {.size = kTextSize});
    svg_.rectangle({left(), y, length, kThickness}, kGrid, {.opacity = 0.45, .radius = 2});
    svg_.rectangle({left(), y, length * std::clamp(bar.part, 0.0, 1.0), kThickness}, bar.paint,
                   {.radius = 2, .tooltip = bar.tooltip});
    svg_.text({kWidth, *top + 12.5}, bar.text, {.size = kTextSize, .anchor = Anchor::kEnd});
    *top += kRow;
  }

  std::vector<MiniBar> accuracies_;
  std::vector<MiniBar> classes_;
  size_t left_out_;
  SvgWriter svg_;
};

}  // namespace

std::string gains_picture(const std::vector<ClientAccuracy>& clients) {
  RangeChart chart;
  chart.title = "Accuracy of the global and the own model, by client";
  chart.unit = "%";
  chart.is_joined = true;
  RangeSeries global{"global model", false, {}};
  RangeSeries own{"own model", false, {}};
  for (const ClientAccuracy& client : clients) {
    chart.rows.push_back(client_label(client));
    chart.row_notes.push_back(signed_points(*gain_of(client)));
    global.marks.emplace_back(RangeMark{100 * *client.global_accuracy, 0});
    own.marks.emplace_back(RangeMark{100 * *client.local_accuracy, 0});
  }
  chart.series = {std::move(global), std::move(own)};
  return range_chart(chart);
}

std::string client_picture(const ClientPicture& picture) {
  return ClientCanvas(picture).draw();
}

}  // namespace bitfed
