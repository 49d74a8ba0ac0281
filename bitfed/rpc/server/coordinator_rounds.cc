// The part of the coordinator that the federation calls: present clients, a round, the result.

#include <algorithm>
#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed_v1.pb.h"

namespace bitfed {
namespace {

using v1::Verdict;

constexpr auto kTick = std::chrono::milliseconds(100);  // how soon a stop or a deadline is seen

ClientResult result_of(uint32_t client, const v1::Offer& offer, Bytes upload) {
  ClientResult result;
  result.client = client;
  result.upload = std::move(upload);
  // These figures are only logged; they are clamped to what the log can hold.
  result.samples = std::min<uint64_t>(offer.samples(), uint64_t{1} << 48);
  result.trained_samples = std::min<uint64_t>(offer.trained_samples(), uint64_t{1} << 48);
  result.train_seconds =
      std::isfinite(offer.train_seconds()) ? std::clamp(offer.train_seconds(), 0.0, 1e9) : 0;
  return result;
}

}  // namespace

size_t Coordinator::ready_count(const std::set<uint32_t>& left_out) const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
    return entry.second.ready && !left_out.contains(*entry.second.number);
  }));
}

// Clients that were dropped are not waited for, until they come back.
size_t Coordinator::needed(size_t left_out) const {
  const size_t away = dropped_.size() + left_out;
  const size_t expected = options_.clients > away ? options_.clients - away : 1;
  return std::min<size_t>(options_.policy.minimum_clients, expected);
}

std::vector<uint32_t> Coordinator::present(uint32_t round, uint32_t clients) {
  std::unique_lock lock(mutex_);
  discard_arrivals();
  decide(Verdict::DISCARDED, "the round is begun again");  // their sum could not be opened
  judge_waiting_offers();
  judge_complaints(round);
  bool logged = false;
  last_progress_ = options_.now();
  const auto too_few = [&] {
    const std::set<uint32_t> without = left_out(round);
    return ready_count(without) < needed(without.size());
  };
  while (too_few() || paused_ || ends_after_round_) {
    check_failure();
    if (ends_after_round_ || (options_.stop && options_.stop())) return {};
    if (!std::exchange(logged, true)) {
      events_(WaitingForClients{
          .round = round, .present = ready_count(left_out(round)), .needed = needed(left_out(round).size())});
    }
    wake_.wait_for(lock, kTick);
  }
  check_failure();
  std::vector<uint32_t> numbers;
  const std::set<uint32_t> without = left_out(round);
  for (const auto& [number, peer] : by_number_) {
    if (number < clients && connections_.at(peer).ready && !without.contains(number))
      numbers.push_back(number);
  }
  return numbers;
}

bool Coordinator::is_over(size_t chosen, Clock::time_point begin) const {
  if (current_->wanted.empty()) return true;
  const RoundPolicy& policy = options_.policy;
  const auto quorum = static_cast<size_t>(std::ceil(policy.quorum * static_cast<double>(chosen) - 1e-9));
  if (current_->answered >= std::max<size_t>(quorum, 1)) return true;
  return policy.deadline_seconds > 0 && seconds_since(begin) >= policy.deadline_seconds &&
         current_->answered >= std::min<size_t>(policy.min_answers, chosen);
}

void Coordinator::run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                            const std::function<void(ClientResult)>& receive) {
  // Said before clients have trained in vain. No error: some methods send less than they receive.
  if (broadcast.size() > options_.max_update_bytes) {
    warn(fmt::format(
        "the broadcast has {} bytes and updates may have {}: if they are as large they are refused; see "
        "--max-update",
        broadcast.size(), options_.max_update_bytes));
  }
  const auto begun_with = store_.chosen(round);
  const size_t chosen = begun_with ? begun_with->size() : clients.size();
  auto begin = options_.now();
  std::unique_lock lock(mutex_);
  last_progress_ = options_.now();
  current_ = Round();
  current_->round = round;
  current_->broadcast = std::make_shared<const Bytes>(broadcast);
  current_->sha256 = sha256_hex(broadcast);
  current_->offered_for = sum_ ? sum_->session : current_->sha256;
  current_->wanted.insert(clients.begin(), clients.end());
  current_->answered = chosen - clients.size();
  for (const uint32_t number : clients) {
    if (dropped_.contains(number)) drop(number, "dropped earlier");
    if (!by_number_.contains(number)) away_since_.try_emplace(number, options_.now());
  }
  for (auto& [number, peer] : by_number_) hand_work(*peer, connections_.at(peer));
  const bool begun = !sum_ || agree_on_masks(lock);
  if (sum_) begin = options_.now();  // the deadline is for updates
  judge_waiting_offers();
  while (begun) {
    check_failure();
    if (options_.stop && options_.stop()) break;
    if (!arrivals_.empty()) take(std::exchange(arrivals_, {}), receive, lock);
    if (is_over(chosen, begin)) break;
    if (arrivals_.empty()) wake_.wait_for(lock, kTick);
  }
  for (const uint32_t client : current_->wanted) {
    if (!options_.stop || !options_.stop()) events_(ClientLost{.round = round, .client = client});
  }
  current_.reset();
}

// Lets the federation have the updates that have come, makes them durable together, and only then tells
// their clients.
void Coordinator::take(std::deque<Arrival> arrivals, const std::function<void(ClientResult)>& receive,
                       std::unique_lock<std::mutex>& lock) {
  struct Answer {
    Verdict::Kind kind = Verdict::ACCEPTED;
    std::string reason;
    bool repeated = false;
  };
  std::vector<Answer> answers(arrivals.size());
  const uint32_t round = current_->round;
  lock.unlock();
  store_.together([&] {
    for (size_t i = 0; i < arrivals.size(); ++i) {
      Arrival& arrival = arrivals[i];
      Answer& answer = answers[i];
      if (arrival.offer->round() != round) {
        answer = {Verdict::DISCARDED, "the round is over", false};
        continue;
      }
      if (const auto known = store_.accepted(round, arrival.client)) {
        answer.repeated = true;
        if (*known != arrival.offer->sha256())
          answer = {Verdict::REFUSED, "another update of this round was accepted", true};
        continue;
      }
      try {
        receive(result_of(arrival.client, *arrival.offer, arrival.incoming.take()));
      } catch (const Error& error) {
        // An update that does not fit is refused; the round goes on without it.
        if (error.kind() != Error::Kind::kInput) throw;
        answer = {Verdict::REFUSED, error.what(), false};
      }
    }
  });
  lock.lock();
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const Arrival& arrival = arrivals[i];
    waiting_bytes_ -= arrival.incoming.size();
    const auto sender = std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
      return entry.second.id == arrival.connection;
    });
    Connection gone;
    gone.number = arrival.client;
    const Connection& connection = sender != connections_.end() ? sender->second : gone;
    if (answers[i].kind != Verdict::DISCARDED) current_->wanted.erase(arrival.client);
    if (answers[i].kind == Verdict::ACCEPTED && !answers[i].repeated) {
      ++current_->answered;
      ++counts_["accepted"];
      last_progress_ = options_.now();
      last_round_[arrival.client] = round;
      if (sender != connections_.end()) allowance_of(connection.name).give_back(options_.now());
    }
    if (answers[i].kind == Verdict::DISCARDED)
      fault("late", connection, fmt::format("an update of round {}, which is over", arrival.offer->round()));
    if (answers[i].kind == Verdict::REFUSED)
      fault("rejected", connection, fmt::format("an update of round {}: {}", round, answers[i].reason));
    // Whether there will be a sum of them is not known yet.
    if (answers[i].kind == Verdict::ACCEPTED && is_undecided(round)) {
      undecided_.push_back({arrival.connection, std::move(arrivals[i].offer)});
      continue;
    }
    if (sender != connections_.end() && !connection.ending)
      verdict(*sender->first, *arrival.offer, answers[i].kind, answers[i].reason);
  }
  judge_waiting_offers();
}

// Updates that were complete when their round was over already.
void Coordinator::discard_arrivals() {
  for (const Arrival& arrival : std::exchange(arrivals_, {})) {
    waiting_bytes_ -= arrival.incoming.size();
    for (auto& [peer, connection] : connections_) {
      if (connection.id != arrival.connection || connection.ending) continue;
      fault("late", connection, fmt::format("an update of round {}, which is over", arrival.offer->round()));
      verdict(*peer, *arrival.offer, Verdict::DISCARDED, "the round is over");
    }
  }
}

void Coordinator::hand_out(uint32_t rounds, Bytes model, double seconds) {
  std::unique_lock lock(mutex_);
  result_sha256_ = sha256_hex(model);
  result_ = std::make_shared<const Bytes>(std::move(model));
  result_rounds_ = rounds;
  discard_arrivals();
  for (auto& [number, peer] : by_number_) hand_result(*peer, connections_.at(peer));
  judge_waiting_offers();
  const size_t known = names_.size();
  const auto begin = options_.now();
  while (have_result_.size() < known && seconds_since(begin) < seconds) {
    if (options_.stop && options_.stop()) return;
    discard_arrivals();
    wake_.wait_for(lock, kTick);
  }
}

}  // namespace bitfed
