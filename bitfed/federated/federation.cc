#include "bitfed/federated/federation.h"

#include <algorithm>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/federated/privacy/masked_sum.h"
#include "bitfed/federated/privacy/random_bits.h"
#include "bitfed/federated/upload_store.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/run/fields.h"

namespace bitfed {
namespace {

// What a checkpoint notes besides the server's state.
struct CheckpointNote {
  struct Selected {
    std::optional<Evaluation> evaluation = {};  // empty: nothing but the preparation is done

    static void fields(auto& self, auto& field) { field.spread("accuracy", self.evaluation); }
  };
  uint32_t round = 0;
  FederationTotals totals;
  Selected selected;
  uint32_t model_round = 0;
  // The rounds of the clients' saves that go with the checkpoint; the first builds did not note them.
  std::vector<uint32_t> client_states;
  std::optional<uint64_t> private_rounds = {};
  std::optional<std::vector<std::string>> devices = {};  // empty: the CPU alone

  static void fields(auto& self, auto& field) {
    field("round", self.round);
    field("totals", self.totals);
    field("evaluation", self.selected);
    field("model_round", self.model_round);
    field("client_states", self.client_states);
    field.if_set("private_rounds", self.private_rounds);
    field.if_set("devices", self.devices);
  }
};

CheckpointNote note_of(const State& state) {
  return read_fields<CheckpointNote>(parse_json(state.text("checkpoint"), state.source()),
                                     state.source() + ": checkpoint");
}

constexpr uint32_t kMaxAttempts = 10;  // cohorts of one round

// In a checkpoint: the server's state after the round that was best so far.
constexpr const char* kSelected = "selected_server";

}  // namespace

uint32_t checkpoint_round(const State& checkpoint) {
  return note_of(checkpoint).round;
}

std::vector<uint32_t> sample_clients(uint64_t seed, uint32_t round, uint32_t clients, uint32_t count,
                                     uint32_t attempt) {
  std::vector<uint32_t> all(clients);
  std::iota(all.begin(), all.end(), 0u);
  RandomStream random({seed, "sampling", round});
  if (attempt > 0) random = random.substream(attempt);
  for (uint32_t i = 0; i < count; ++i) std::swap(all[i], all[i + random.below(clients - i)]);
  all.resize(count);
  std::sort(all.begin(), all.end());
  return all;
}

Federation::Federation(const FederationOptions& options, ServerHalf& server, Transport& transport,
                       RoundStore& store, Evaluate evaluate, EventSink events)
    : options_(options),
      server_(server),
      transport_(transport),
      store_(store),
      evaluate_(std::move(evaluate)),
      events_(std::move(events)) {
  if (!options_.privacy) return;
  const DifferentialPrivacy& privacy = *options_.privacy;
  cost_.emplace(privacy.release);
  if (privacy.max_epsilon) {
    const uint64_t within =
        releases_within(*privacy.max_epsilon, privacy.delta, privacy.release, options_.rounds);
    if (within < options_.rounds) max_private_rounds_ = within;
  }
}

void Federation::run() {
  const uint32_t done = restore();
  if (done < options_.rounds &&
      std::find(devices_.begin(), devices_.end(), options_.device) == devices_.end())
    devices_.push_back(options_.device);
  // Round 0 is the preparation: clients answer what the server must know before training.
  for (uint32_t round = server_.needs_preparation() ? 0 : done + 1; round <= options_.rounds; ++round) {
    if (round > 0 && private_rounds_ >= max_private_rounds_) {
      const double epsilon = cost_->epsilon(private_rounds_ + 1, options_.privacy->delta);
      const std::string text =
          fmt::format("round {} is not run: it would spend epsilon {:.3f}, max_epsilon is {}", round, epsilon,
                      *options_.privacy->max_epsilon);
      if (private_rounds_ == 0) throw input_error("privacy.max_epsilon: {}", text);
      events_(Warning{text});
      break;
    }
    run_round(round);
  }
  wait_for_ending();
  if (selected_.round == 0) throw failure("no client answered in any of {} rounds", options_.rounds);
  if (options_.select_by_validation) server_.restore(decode(selected_.server, "the selected round"));
  model_ = server_.model();
}

// All clients take part in the preparation. The choice is a function of seed, round and the clients present;
// a round that was begun continues with the clients it was begun with.
std::vector<uint32_t> Federation::choose(uint32_t round) {
  if (auto begun = store_.chosen(round)) return *std::move(begun);
  const std::vector<uint32_t> present = transport_.present(round, options_.clients);
  if (present.empty()) throw Error(Error::Kind::kStopped, "stopped");
  std::vector<uint32_t> clients;
  if (options_.privacy && options_.privacy->noise_clients == 0 && round > 0) {
    clients = draw_each(round, present);
  } else {
    const auto there = static_cast<uint32_t>(present.size());
    const uint32_t count = round > 0 ? std::min(options_.clients_per_round, there) : there;
    clients = sample_clients(options_.seed, round, there, count, store_.attempts(round));
    for (uint32_t& client : clients) client = present[client];
  }
  std::erase_if(clients, [&](uint32_t client) {
    return std::binary_search(options_.without.begin(), options_.without.end(), client);
  });
  store_.begin_round(round, clients);
  return clients;
}

// Poisson sampling, as the accountant counts it: each with the same probability, whoever else is drawn. A
// client that is away when it would have been drawn takes part less often, which costs no privacy.
std::vector<uint32_t> Federation::draw_each(uint32_t round, const std::vector<uint32_t>& present) const {
  const uint64_t draw = options_.privacy->draw;
  RandomBits bits(options_.draws_secretly ? system_random_words()
                                          : seeded_random_words({options_.seed, "poisson", round,
                                                                 draw << 32 | store_.attempts(round)}));
  std::vector<uint32_t> drawn;
  for (const uint32_t client : present) {
    if (bits.below(options_.clients) < options_.clients_per_round) drawn.push_back(client);
  }
  return drawn;
}

void Federation::run_round(uint32_t round) {
  const bool training = round > 0;
  const bool is_private = training && options_.privacy;
  const Bytes broadcast = encode(server_.broadcast(round));
  const std::vector<uint32_t> clients = choose(round);
  // The digest of a large broadcast takes longer than all else here, and few rounds store an upload.
  std::string text;
  const Text depends_on = [&]() -> const std::string& {
    if (text.empty())
      text = fmt::format("{}round = {}\nbroadcast = {}\n", options_.depends_on, round, sha256_hex(broadcast));
    return text;
  };
  events_(RoundStarted{.round = round, .clients = clients, .download_bytes = broadcast.size()});
  const FederationTotals before = totals_;
  answered_.clear();
  arrived_.clear();
  const bool masked = server_.masked_sum() != nullptr;
  if (masked) transport_.begin_sum(round, store_.attempts(round), clients, sha256_hex(broadcast));

  const bool stored = store_.has_round(round);
  // Of rounds after the first, another run has the uploads of its last one alone, if any.
  const bool reuses = !options_.reuse.empty() && (round <= 1 || UploadStore(options_.reuse).has_round(round));
  std::vector<uint32_t> missing;
  for (const uint32_t client : clients) {
    if (auto kept = stored ? store_.find(round, client, depends_on()) : std::nullopt) {
      receive(round, *std::move(kept), depends_on, Origin::kCheckpoint);
    } else if (reuses) {
      auto other = UploadStore(options_.reuse).find(round, client, depends_on());
      if (!other) {
        throw input_error("{}: holds no upload of client {} in round {}", options_.reuse.string(), client,
                          round);
      }
      other->reused = true;
      receive(round, *std::move(other), depends_on, Origin::kReused);
    } else {
      missing.push_back(client);
    }
  }
  transport_.run_round(round, broadcast, missing, [&](ClientResult result) {
    receive(round, std::move(result), depends_on, Origin::kTrained);
  });
  if (options_.stop && options_.stop()) throw Error(Error::Kind::kStopped, "stopped");
  if (const auto part = transport_.take_part()) server_.accept_part(*part);
  // That nobody was drawn is released like any other sum, as noise alone.
  if (totals_.uploads == before.uploads && !(is_private && clients.empty())) {
    begin_again(round, broadcast.size() * clients.size());
    return;
  }
  if (masked && !open_sum(round, broadcast.size() * clients.size())) return;
  totals_.download_bytes += broadcast.size() * clients.size();

  if (!training) {
    totals_.preparation_uploads = totals_.uploads;
    totals_.preparation_upload_bytes = totals_.upload_bytes;
    totals_.preparation_download_bytes = totals_.download_bytes;
  }

  const Stopwatch aggregation;
  server_.finish_round(round);
  if (is_private) ++private_rounds_;
  const double aggregation_seconds = aggregation.seconds();
  totals_.aggregation_seconds += aggregation_seconds;

  RoundFinished event{.round = round,
                      .uploads = totals_.uploads - before.uploads,
                      .upload_bytes = totals_.upload_bytes - before.upload_bytes,
                      .download_bytes = totals_.download_bytes - before.download_bytes,
                      .aggregation_seconds = aggregation_seconds};
  if (const auto load = transport_.load()) {
    event.workers = load->workers;
    event.workers_busy = load->busy;
    event.received_bytes = load->received_bytes;
  }
  if (is_private) event.epsilon = cost_->epsilon(private_rounds_, options_.privacy->delta);
  // Noise that could be drawn again would tell more than was accounted for: a sum whose noise does not come
  // from the seed is durable, and counted, before anybody sees anything of it.
  const bool is_secret = is_private && options_.draws_secretly;
  Ending ending{.event = std::move(event),
                .evaluates = is_evaluated(round),
                .saves = is_secret || is_last(round) || since_save_.seconds() >= options_.checkpoint_seconds};
  if (ending.saves) since_save_ = Stopwatch();
  if (options_.ends_beside) {
    end_beside(std::move(ending));
  } else {
    totals_.evaluation_seconds += end(&ending);
  }
}

// Evaluation, checkpoint, event. Returns the seconds of the evaluation.
double Federation::end(Ending* ending) {
  const uint32_t round = ending->event.round;
  double seconds = 0;
  if (ending->evaluates) {
    const Stopwatch evaluation;
    ending->event.scores = evaluate(round, ending);
    seconds = evaluation.seconds();
    ending->event.evaluation_seconds = seconds;
  }
  if (ending->saves) {
    if (!ending->totals) ending->totals = totals_;
    ending->totals->evaluation_seconds += seconds;
    save(round, ending);
  }
  events_(ending->event);
  // The last round's uploads stay, for other methods to reuse.
  if (round > 1) store_.remove_round(round - 1);
  return seconds;
}

// On a thread of its own, with all that the next round changes taken along.
void Federation::end_beside(Ending ending) {
  wait_for_ending();
  if (ending.evaluates) ending.model = server_.model_later();
  if (ending.saves || (ending.evaluates && options_.select_by_validation)) ending.server = server_.save();
  ending.totals = totals_;
  ending.private_rounds = private_rounds_;
  if (ending.saves) ending.client_states = transport_.save(ending.event.round);
  ending_ = std::async(std::launch::async,
                       [this, own = std::make_shared<Ending>(std::move(ending))] { return end(own.get()); });
}

// Its error, if it has one, is thrown here.
void Federation::wait_for_ending() {
  if (ending_.valid()) totals_.evaluation_seconds += ending_.get();
}

// Makes the masked sum of the round the sum of its updates. False: it cannot be opened, and the round was
// begun again or is lost.
bool Federation::open_sum(uint32_t round, uint64_t download_bytes) {
  std::sort(answered_.begin(), answered_.end());
  MaskedSum& sum = *server_.masked_sum();
  const Opening opening = transport_.open_sum(round, answered_, sum.fields());
  if (opening.masks) {
    sum.remove(*opening.masks);
    return true;
  }
  if (options_.stop && options_.stop()) throw Error(Error::Kind::kStopped, "stopped");
  sum.forget();
  if (opening.asked && round > 0) {
    if (options_.privacy) ++private_rounds_;  // clients may have helped: it counts, though nothing was seen
    // Durable, so that nobody is asked again after a restart.
    wait_for_ending();
    Ending ending{};
    if (is_evaluated(round)) evaluate(round, &ending);
    save(round, &ending);
    lose(round, download_bytes);
  } else {
    begin_again(round, download_bytes);
  }
  return false;
}

// The model stays as it is.
void Federation::lose(uint32_t round, uint64_t download_bytes) {
  wait_for_ending();
  totals_.download_bytes += download_bytes;
  Ending ending{};
  if (round == options_.rounds && selected_.round > 0) save(round, &ending);
  RoundFinished event{.round = round, .download_bytes = download_bytes};
  if (options_.privacy && round > 0) event.epsilon = cost_->epsilon(private_rounds_, options_.privacy->delta);
  events_(event);
}

// A cohort that failed as a whole is replaced by another, kMaxAttempts times. Where there is no other, as in
// a simulation, the round is lost and the model stays as it is.
void Federation::begin_again(uint32_t round, uint64_t download_bytes) {
  const auto attempts = store_.abandon_round(round);
  if (!attempts) {
    if (round == 0) throw failure("round 0: no client answered");
    lose(round, download_bytes);
    return;
  }
  if (*attempts % kMaxAttempts == 0) {
    throw input_error(
        "round {}: found no answer from {} cohorts in a row, expected one: see client-fault in events.jsonl",
        round, kMaxAttempts);
  }
  run_round(round);
}

bool Federation::is_last(uint32_t round) const {
  return round == options_.rounds || private_rounds_ >= max_private_rounds_;
}

// The preparation is not.
bool Federation::is_evaluated(uint32_t round) const {
  return round > 0 && (round % options_.evaluate_every == 0 || is_last(round));
}

// Evaluates the round's model, which may become the run's.
Scores Federation::evaluate(uint32_t round, Ending* ending) {
  Evaluation evaluation = evaluate_(*(ending->model ? ending->model() : server_.model()));
  const Scores scores = evaluation.scores;
  if (!options_.select_by_validation) {
    selected_ = {round, std::move(evaluation), {}};
  } else if (selected_.round == 0 ||
             scores.validation_accuracy > selected_.evaluation.scores.validation_accuracy) {
    selected_ = {round, std::move(evaluation), encode(ending->server ? *ending->server : server_.save())};
  }
  return scores;
}

void Federation::receive(uint32_t round, ClientResult result, const Text& depends_on, Origin origin) {
  arrived_.push_back(std::move(result));
  if (!arrived_.back().more_follow) accept(round, std::exchange(arrived_, {}), depends_on, origin);
}

// Results that are there together.
void Federation::accept(uint32_t round, std::vector<ClientResult> results, const Text& depends_on,
                        Origin origin) {
  std::vector<ArrivedUpload> uploads;
  for (ClientResult& result : results) {
    if (result.added_up) continue;
    if (!result.state) result.state = decode(result.upload, upload_name(round, result.client));
    uploads.push_back({result.client, *result.state});
  }
  server_.accept_all(uploads);
  for (ClientResult& result : results) {
    // The uploads of a one-shot method are all its work, and other methods can be tried on them. Where a
    // client kept something that belongs to its upload, the upload alone is of no use.
    const bool worth_keeping = options_.rounds == 1 || result.train_seconds >= options_.keep_seconds;
    if (origin != Origin::kCheckpoint && worth_keeping && !result.keeps_state && !result.added_up) {
      if (result.upload.empty()) result.upload = encode(*result.state);
      store_.put(round, result, depends_on());
    }
    const uint64_t upload_bytes = result.added_up         ? result.upload_bytes
                                  : result.upload.empty() ? encoded_size(*result.state)
                                                          : result.upload.size();
    answered_.push_back(result.client);
    ++totals_.uploads;
    totals_.reused_uploads += result.reused ? 1 : 0;
    totals_.upload_bytes += upload_bytes;
    totals_.train_samples += result.trained_samples;
    totals_.train_seconds += result.train_seconds;
    events_(ClientFinished{.round = round,
                           .client = result.client,
                           .samples = result.samples,
                           .upload_bytes = upload_bytes,
                           .seconds = result.train_seconds,
                           .origin = origin});
  }
}

// Before the next checkpoint, and before the run ends.
void Federation::finish_save() {
  if (saving_.valid()) saving_.get();
}

void Federation::save(uint32_t round, Ending* ending) {
  finish_save();
  CheckpointNote note{
      .round = round,
      .totals = ending->totals ? *ending->totals : totals_,
      .selected = {},
      .model_round = selected_.round,
      .client_states = ending->client_states ? *ending->client_states : transport_.save(round)};
  if (selected_.round > 0) note.selected.evaluation = selected_.evaluation;
  if (options_.privacy) note.private_rounds = ending->private_rounds.value_or(private_rounds_);
  if (devices_ != std::vector<std::string>{""}) note.devices = devices_;
  State state = ending->server ? *std::move(ending->server) : server_.save();
  if (!selected_.server.empty()) state.add(kSelected, {selected_.server.size()}, selected_.server);
  state.metadata["checkpoint"] = write_fields(note).dump();
  // What clients keep first: a checkpoint is complete without anything that is written after it.
  const bool behind = options_.writes_behind && !options_.ends_beside && !is_last(round);
  saving_ = std::async(behind ? std::launch::async : std::launch::deferred,
                       [this, round, saved = std::move(state)] {
                         transport_.write_saved();
                         store_.save(round, saved);
                       });
  if (!behind) finish_save();
}

// Returns the last finished round; 0 if there is none.
uint32_t Federation::restore() {
  const std::optional<State> saved = store_.load();
  if (!saved) return 0;
  const State& state = *saved;
  const CheckpointNote note = note_of(state);
  totals_ = note.totals;
  private_rounds_ = note.private_rounds.value_or(0);
  devices_ = note.devices.value_or(std::vector<std::string>{""});
  server_.restore(state);
  transport_.restore(note.round, note.client_states);
  if (note.round == 0) return 0;
  const bool none_yet = note.round < std::min(options_.evaluate_every, options_.rounds);
  if (none_yet && note.model_round == 0) return note.round;
  if (!note.selected.evaluation || note.model_round == 0 || note.model_round > note.round) {
    throw input_error("{}: checkpoint: model_round: found {}, expected an evaluated round from 1 to {}",
                      state.source(), note.model_round, note.round);
  }
  selected_.evaluation = *note.selected.evaluation;
  selected_.round = note.model_round;
  if (options_.select_by_validation) selected_.server = state.values<uint8_t>(kSelected, {State::kAny});
  return note.round;
}

}  // namespace bitfed
