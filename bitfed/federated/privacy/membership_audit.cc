#include "bitfed/federated/privacy/membership_audit.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "bitfed/base/hash/random.h"

namespace bitfed {

std::vector<uint32_t> withheld_clients(uint64_t seed, uint32_t repeat, uint32_t clients) {
  std::vector<uint32_t> all(clients);
  std::iota(all.begin(), all.end(), 0u);
  RandomStream({seed, "audit", repeat}).shuffle(std::span(all));
  all.resize(clients / 2);
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<double> fit_of_clients(const Model& model, const Dataset& samples, const Partition& partition,
                                   ThreadPool& pool) {
  const std::vector<float> scores = model.scores(samples, pool);
  const size_t classes = model.class_count();
  double sum = 0;
  double squares = 0;
  for (const float score : scores) {
    sum += score;
    squares += static_cast<double>(score) * score;
  }
  const auto count = static_cast<double>(scores.size());
  const double scale = std::max(1.0, std::sqrt(std::max(0.0, squares / count - sum * sum / count / count)));
  std::vector<double> fit;
  for (const auto& rows : partition) {
    double loss = 0;
    for (const uint32_t row : rows) {
      const float* of_sample = &scores[row * classes];
      const double right = of_sample[samples.labels[row]];
      double others = 0;
      for (size_t c = 0; c < classes; ++c) others += std::exp(std::min(50.0, (of_sample[c] - right) / scale));
      loss += std::log(others);
    }
    fit.push_back(-loss / static_cast<double>(rows.size()));
  }
  return fit;
}

AttackResult attack_membership(const std::vector<AuditedModel>& models) {
  assert(!models.empty());
  const size_t clients = models.front().fit.size();
  AttackResult result;
  for (size_t m = 0; m < models.size(); ++m) {
    std::vector<double> excess(clients);
    for (size_t c = 0; c < clients; ++c) {
      double elsewhere = 0;
      for (const AuditedModel& model : models) elsewhere += model.fit[c];
      elsewhere -= models[m].fit[c];
      excess[c] =
          models[m].fit[c] - (models.size() > 1 ? elsewhere / static_cast<double>(models.size() - 1) : 0.0);
    }
    std::vector<size_t> order(clients);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return excess[a] > excess[b]; });
    const auto members =
        static_cast<size_t>(std::count(models[m].is_member.begin(), models[m].is_member.end(), true));
    for (size_t rank = 0; rank < clients; ++rank)
      result.right += models[m].is_member[order[rank]] == (rank < members) ? 1 : 0;
    result.guesses += clients;
  }
  const auto n = static_cast<double>(result.guesses);
  const double p = static_cast<double>(result.right) / n;
  constexpr double kZ = 1.96;
  const double middle = (p + kZ * kZ / (2 * n)) / (1 + kZ * kZ / n);
  const double half = kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n)) / (1 + kZ * kZ / n);
  result.advantage = 2 * p - 1;
  result.low = 2 * (middle - half) - 1;
  result.high = 2 * (middle + half) - 1;
  return result;
}

double advantage_bound(double epsilon, double delta) {
  return std::min(1.0, (std::expm1(epsilon) + 2 * delta) / (std::exp(epsilon) + 1));
}

}  // namespace bitfed
