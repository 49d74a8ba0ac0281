#include "bitfed/federated/personal_evaluation.h"

#include <algorithm>
#include <atomic>
#include <numeric>

namespace bitfed {
namespace {

size_t count_right(const Model& model, const Dataset& dataset, ThreadPool& pool) {
  const std::vector<uint16_t> predicted = predict(model, dataset, pool);
  size_t right = 0;
  for (size_t i = 0; i < predicted.size(); ++i) right += predicted[i] == dataset.labels[i] ? 1 : 0;
  return right;
}

std::optional<double> fraction(size_t right, size_t all) {
  return all == 0 ? std::nullopt : std::optional(static_cast<double>(right) / static_cast<double>(all));
}

}  // namespace

std::span<const uint32_t> PersonalEvaluation::rows_of(uint32_t client) const {
  const uint32_t group = group_of(client);
  const size_t begin = group == 0 ? 0 : ends_[group - 1];
  return {rows_.data() + begin, ends_[group] - begin};
}

// A counting sort by group, which keeps the order of a group's rows.
void PersonalEvaluation::sort_rows() {
  std::vector<size_t> next(train_.group_names.size() + 1);
  for (const uint32_t group : test_.groups) ++next[group + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  rows_.resize(test_.size());
  for (uint32_t row = 0; row < test_.size(); ++row) rows_[next[test_.groups[row]]++] = row;
  next.pop_back();  // every entry has moved on to its group's end
  ends_ = std::move(next);
}

ClientStates::Judged PersonalEvaluation::judge(uint32_t client, const Bytes& kept, const ClientHalf& half) {
  if (kept.empty()) return {};
  const std::unique_ptr<Model> own = half.personal_model(decode(kept, "the client's own state"));
  if (own == nullptr) return {};
  if (!by_group_) return {true, fraction(count_right(*own, test_, one_), test_.size())};
  std::call_once(sorted_, [this] { sort_rows(); });
  const Dataset test = samples_at(test_, rows_of(client));
  return {true, test.size() == 0 ? std::nullopt : fraction(count_right(*own, test, one_), test.size())};
}

// Evaluates the personal models of the clients whose states have changed since the last call.
void PersonalEvaluation::refresh(const ClientHalf& client, const ClientStates& states, ThreadPool& pool) {
  judged_.resize(states.size());
  std::vector<uint32_t> changed;
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (judged_[i].version != states.version(i)) changed.push_back(i);
  }
  std::atomic<bool> any = any_;
  pool.for_each(changed.size(), [&](size_t i) {
    const uint32_t who = changed[i];
    const auto known = states.judged(who);
    const ClientStates::Judged judged = known ? *known : judge(who, states.of(who), client);
    judged_[who] = {states.version(who), judged.accuracy};
    if (judged.has_model) any = true;
  });
  any_ = any;
}

std::optional<double> PersonalEvaluation::mean_accuracy(const ClientHalf& client, const ClientStates& states,
                                                        ThreadPool& pool) {
  refresh(client, states, pool);
  double sum = 0;
  size_t count = 0;
  for (const Judged& judged : judged_) {
    if (!judged.accuracy) continue;
    sum += *judged.accuracy;
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

// The test samples of each group that the model predicts right.
std::vector<size_t> PersonalEvaluation::right_by_group(const Model& global, ThreadPool& pool) const {
  std::vector<size_t> right(train_.group_names.size());
  const std::vector<uint16_t> predicted = predict(global, test_, pool);
  for (size_t i = 0; i < predicted.size(); ++i)
    right[test_.groups[i]] += predicted[i] == test_.labels[i] ? 1 : 0;
  return right;
}

std::vector<ClientAccuracy> PersonalEvaluation::table(const Model& global, const ClientHalf& client,
                                                      const ClientStates& states, ThreadPool& pool) {
  refresh(client, states, pool);
  if (!any_) return {};
  if (by_group_) std::call_once(sorted_, [this] { sort_rows(); });
  const std::vector<size_t> right = by_group_ ? right_by_group(global, pool) : std::vector<size_t>();
  const std::optional<double> on_all =
      by_group_ ? std::nullopt : fraction(count_right(global, test_, pool), test_.size());
  std::vector<ClientAccuracy> rows;
  rows.reserve(states.size());
  for (uint32_t i = 0; i < states.size(); ++i) {
    const size_t tests = test_samples(i);
    rows.push_back({.client = i,
                    .name = by_group_ ? std::optional(train_.group_names[group_of(i)]) : std::nullopt,
                    .samples = partition_[i].size(),
                    .test_samples = tests,
                    .global_accuracy = by_group_ ? fraction(right[group_of(i)], tests) : on_all,
                    .local_accuracy = judged_[i].accuracy});
  }
  return rows;
}

}  // namespace bitfed
