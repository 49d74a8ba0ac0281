#include "bitfed/federated/tsetlin/margin_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/federated/expect_tensors.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {
namespace {

constexpr double kWidth = 0.5;      // of what counts as close to a rival, in standard deviations
constexpr double kMinWidth = 0.01;  // a single sample has no deviation
constexpr double kPrior = 100;      // samples: with few, offsets stay near 0
constexpr double kDoubt = 1000;  // samples of a class: with few, a client's machine has learnt them by heart
constexpr size_t kMaxSweeps = 100;
constexpr double kSmallStep = 1e-5;

// The slope of the function to minimise in one offset, and the curvature of the parabola that lies above it.
struct Slope {
  double slope = 0;
  double curvature = 0;

  // Of samples * (sqrt(width^2 + margin^2) - margin), where the offset has this sign in the margin.
  void add(double samples, double margin, double deviation, double sign) {
    const double width = std::max(kWidth * deviation, kMinWidth);
    const double root = std::sqrt(width * width + margin * margin);
    slope += sign * samples * (margin / root - 1);
    curvature += samples / root;
  }
};

// What all held classes have in common changes no prediction.
void subtract_mean(const std::vector<bool>& held, std::vector<double>* offsets) {
  const auto count = static_cast<double>(std::count(held.begin(), held.end(), true));
  const double mean = std::accumulate(offsets->begin(), offsets->end(), 0.0) / std::max(count, 1.0);
  for (size_t label = 0; label < offsets->size(); ++label) {
    if (held[label]) (*offsets)[label] -= mean;
  }
}

std::vector<bool> held_classes(const std::map<uint32_t, Margins>& received, size_t classes) {
  std::vector<bool> held(classes);
  for (const auto& [client, margins] : received) {
    for (const uint16_t label : margins.counts.classes) held[label] = true;
  }
  return held;
}

Slope slope_of(const std::map<uint32_t, Margins>& received, const std::vector<double>& parts,
               const std::vector<bool>& held, const std::vector<double>& offsets, size_t label) {
  const size_t classes = offsets.size();
  Slope slope{kPrior * offsets[label], kPrior};
  auto part = parts.begin();
  for (const auto& entry : received) {  // lambdas of C++20 take no part of a structured binding in clang 14
    const Margins& margins = entry.second;
    const double counted = *part++;
    for (size_t i = 0; i < margins.counts.classes.size(); ++i) {
      const size_t own = margins.counts.classes[i];
      const double known = counted * margins.counts.samples[i];
      const double weight = known * known / (known + kDoubt);
      const auto add = [&](size_t other, double sign) {
        const size_t pair = i * classes + other;
        if (margins.shares[pair] == 0) return;
        const double samples = weight * margins.shares[pair];
        const double margin = margins.means[pair] + offsets[own] - offsets[other];
        slope.add(samples, margin, margins.deviations[pair], sign);
      };
      if (own != label) {
        add(label, -1);
        continue;
      }
      for (size_t other = 0; other < classes; ++other) {
        if (other != label && held[other]) add(other, 1);
      }
    }
  }
  return slope;
}

// The chance that a normal variable is below 0.
double below_zero(double mean, double deviation) {
  if (deviation == 0) return mean < 0 ? 1 : 0;
  return std::erfc(mean / deviation / std::sqrt(2.0)) / 2;
}

// The part of a client's samples for which another class has the better score.
double wrong_part(const Margins& margins, const std::vector<double>& offsets) {
  double wrong = 0;
  for (size_t i = 0; i < margins.counts.classes.size(); ++i) {
    const size_t own = margins.counts.classes[i];
    for (size_t other = 0; other < offsets.size(); ++other) {
      const size_t pair = i * offsets.size() + other;
      const double samples = static_cast<double>(margins.counts.samples[i]) * margins.shares[pair];
      const double margin = margins.means[pair] + offsets[own] - offsets[other];
      wrong += samples * below_zero(margin, margins.deviations[pair]);
    }
  }
  return wrong / static_cast<double>(margins.counts.total());
}

// Of these samples, with nothing said of them.
Margins no_margins(const ClassCounts& counts, size_t classes) {
  const std::vector<float> zeros(counts.classes.size() * classes);
  return {counts, zeros, zeros, zeros};
}

State message_of(const Margins& margins, size_t classes) {
  State message;
  add_counts(margins.counts, &message);
  const std::vector<size_t> shape = {margins.counts.classes.size(), classes};
  message.add("rivals", shape, margins.shares);
  message.add("margins", shape, margins.means);
  message.add("deviations", shape, margins.deviations);
  return message;
}

// The class with the best score besides the sample's own; the first on ties.
size_t rival_of(const float* scores, size_t classes, size_t own) {
  size_t rival = own == 0 ? 1 : 0;
  for (size_t other = rival + 1; other < classes; ++other) {
    if (other != own && scores[other] > scores[rival]) rival = other;
  }
  return rival;
}

}  // namespace

std::vector<double> MarginFit::counted_parts() const {
  std::vector<uint64_t> totals;
  for (const auto& [client, margins] : received_) totals.push_back(margins.counts.total());
  return parts_that_count(totals);
}

// One offset after the other, each to the lowest point of the parabola: no step makes it worse.
std::vector<double> MarginFit::offsets() const {
  std::vector<double> offsets(classes_);
  const std::vector<bool> held = held_classes(received_, classes_);
  const std::vector<double> parts = counted_parts();
  for (size_t sweep = 0; sweep < kMaxSweeps; ++sweep) {
    double largest = 0;
    for (size_t label = 0; label < classes_; ++label) {
      if (!held[label]) continue;
      const Slope slope = slope_of(received_, parts, held, offsets, label);
      const double step = slope.slope / slope.curvature;
      offsets[label] -= step;
      largest = std::max(largest, std::abs(step));
    }
    subtract_mean(held, &offsets);
    if (largest < kSmallStep) break;
  }
  return offsets;
}

Disagreement MarginFit::disagreement(const std::vector<double>& offsets) const {
  Disagreement found;
  const std::vector<double> parts = counted_parts();
  double samples = 0;
  double wrong = 0;
  auto part = parts.begin();
  for (const auto& [client, margins] : received_) {
    const double of_client = wrong_part(margins, offsets);
    const auto total = static_cast<double>(margins.counts.total());
    const double counted = *part++ * total;
    samples += counted;
    wrong += counted * of_client;
    if (total >= kFewSamples && of_client > 0.5) ++found.clients;
  }
  found.wrong = samples > 0 ? wrong / samples : 0;
  return found;
}

bool asks_for_margins(const State& broadcast) {
  return broadcast.metadata.contains("bitfed.kind");
}

State margin_message(const State& broadcast, const Dataset& samples) {
  const std::unique_ptr<TsetlinModel> model = tsetlin_model_from_state(broadcast, "broadcast");
  model->check_fits(samples);
  const size_t classes = samples.class_count();
  if (model->class_count() != classes) {
    throw input_error("broadcast: found a model of {} classes, expected {}", model->class_count(), classes);
  }
  const ClassCounts counts = count_classes(samples);
  std::vector<size_t> row(classes);  // of each class in the message
  for (size_t i = 0; i < counts.classes.size(); ++i) row[counts.classes[i]] = i;

  ThreadPool pool(1);
  const std::vector<float> scores = model->scores(samples, pool);
  const size_t pairs = counts.classes.size() * classes;
  std::vector<double> numbers(pairs);
  std::vector<double> sums(pairs);
  std::vector<double> squares(pairs);
  for (size_t i = 0; i < samples.size() && classes > 1; ++i) {
    const float* of_sample = scores.data() + i * classes;
    const size_t own = samples.labels[i];
    const size_t rival = rival_of(of_sample, classes, own);
    const double margin = static_cast<double>(of_sample[own]) - of_sample[rival];
    const size_t pair = row[own] * classes + rival;
    numbers[pair] += 1;
    sums[pair] += margin;
    squares[pair] += margin * margin;
  }
  Margins margins = no_margins(counts, classes);
  for (size_t pair = 0; pair < pairs; ++pair) {
    if (numbers[pair] == 0) continue;
    const double mean = sums[pair] / numbers[pair];
    const double variance = squares[pair] / numbers[pair] - mean * mean;
    margins.shares[pair] = static_cast<float>(numbers[pair] / counts.samples[pair / classes]);
    margins.means[pair] = static_cast<float>(mean);
    margins.deviations[pair] = static_cast<float>(std::sqrt(std::max(variance, 0.0)));
  }
  return message_of(margins, classes);
}

uint64_t margin_message_bytes(const ClassCounts& counts, size_t classes) {
  return encoded_size(message_of(no_margins(counts, classes), classes));
}

// A client's part in a slope is at most twice its samples that count, whatever its margins: these need only
// be finite.
Margins read_margins(const State& message, const TsetlinRecipe& recipe) {
  Margins margins;
  margins.counts = read_counts(message, recipe);
  const size_t held = margins.counts.classes.size();
  const size_t classes = recipe.prototype.class_count();
  margins.shares = message.values<float>("rivals", {held, classes});
  margins.means = message.values<float>("margins", {held, classes});
  margins.deviations = message.values<float>("deviations", {held, classes});
  expect_tensors(message, 5);
  const auto not_negative = [](float value) { return std::isfinite(value) && value >= 0; };
  for (size_t i = 0; i < held; ++i) {
    const float* shares = margins.shares.data() + i * classes;
    if (!std::all_of(shares, shares + classes, not_negative) ||
        std::accumulate(shares, shares + classes, 0.0) > 1.001) {
      throw input_error("tensor 'rivals': expected parts of each class's samples, at most 1 in all");
    }
  }
  if (!std::all_of(margins.means.begin(), margins.means.end(),
                   [](float value) { return std::isfinite(value); }))
    throw input_error("tensor 'margins': expected finite values");
  if (!std::all_of(margins.deviations.begin(), margins.deviations.end(), not_negative))
    throw input_error("tensor 'deviations': expected finite values of 0 or more");
  return margins;
}

}  // namespace bitfed
