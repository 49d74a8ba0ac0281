#include "bitfed/federated/personal_evaluation.h"

#include <algorithm>

namespace bitfed {
namespace {

double accuracy(const Model& model, const Dataset& dataset, ThreadPool& pool) {
  const std::vector<uint16_t> predicted = predict(model, dataset, pool);
  size_t right = 0;
  for (size_t i = 0; i < predicted.size(); ++i) right += predicted[i] == dataset.labels[i] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(predicted.size());
}

std::unique_ptr<Model> model_of(uint32_t client, const ClientHalf& half, const ClientStates& states) {
  if (states.of(client).empty()) return nullptr;
  return half.personal_model(decode(states.of(client), "the client's own state"));
}

}  // namespace

PersonalEvaluation::PersonalEvaluation(const Dataset& train, const Partition& partition, bool by_group,
                                       const Dataset& test)
    : by_group_(by_group), all_(test) {
  std::vector<std::vector<uint32_t>> rows(train.group_names.size());
  for (uint32_t i = 0; by_group && i < test.size(); ++i) rows[test.groups[i]].push_back(i);
  for (const std::vector<uint32_t>& samples : partition) {
    samples_.push_back(samples.size());
    if (!by_group) continue;
    const uint32_t group = train.groups[samples.front()];
    tests_.push_back(subset(test, rows[group]));
    names_.push_back(train.group_names[group]);
  }
}

std::optional<double> PersonalEvaluation::mean_accuracy(const ClientHalf& client, const ClientStates& states,
                                                        ThreadPool& pool) const {
  double sum = 0;
  size_t count = 0;
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (test_of(i).size() == 0) continue;
    const std::unique_ptr<Model> own = model_of(i, client, states);
    if (own == nullptr) continue;
    sum += accuracy(*own, test_of(i), pool);
    ++count;
  }
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

std::vector<ClientAccuracy> PersonalEvaluation::table(const Model& global, const ClientHalf& client,
                                                      const ClientStates& states, ThreadPool& pool) const {
  std::vector<std::unique_ptr<Model>> own;
  bool any = false;
  for (uint32_t i = 0; i < states.size(); ++i) {
    own.push_back(model_of(i, client, states));
    any |= own.back() != nullptr;
  }
  if (!any) return {};
  const auto evaluated = [&](const Model* model, const Dataset& test) {
    return model == nullptr || test.size() == 0 ? std::nullopt : std::optional(accuracy(*model, test, pool));
  };
  const std::optional<double> global_on_all = by_group_ ? std::nullopt : evaluated(&global, all_);
  std::vector<ClientAccuracy> rows;
  for (uint32_t i = 0; i < states.size(); ++i) {
    const Dataset& test = test_of(i);
    rows.push_back({.client = i,
                    .name = names_.empty() ? std::nullopt : std::optional(names_[i]),
                    .samples = samples_[i],
                    .test_samples = test.size(),
                    .global_accuracy = by_group_ ? evaluated(&global, test) : global_on_all,
                    .local_accuracy = evaluated(own[i].get(), test)});
  }
  return rows;
}

}  // namespace bitfed
