#include "cli/progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace bitfed::cli {
namespace {

using Clock = std::chrono::steady_clock;

// ", own models 83.27 %" where clients keep some.
std::string own_models(const Scores& scores) {
  if (!scores.local_accuracy_mean) return "";
  return fmt::format(", own models {:.2f} %", 100 * *scores.local_accuracy_mean);
}

std::string epsilon(const RoundFinished& event) {
  return event.epsilon ? fmt::format(", epsilon {:.2f}", *event.epsilon) : "";
}

// ", 16 workers 94 % busy" where other processes train.
std::string workers(const RoundFinished& event) {
  if (!event.workers || !event.workers_busy) return "";
  return fmt::format(", {} workers {:.0f} % busy", *event.workers, 100 * *event.workers_busy);
}

}  // namespace

std::string short_duration(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

Bars::Bars() : terminal_(isatty(STDERR_FILENO) != 0) {}

Bars::~Bars() {
  erase();
}

// Leaves the cursor where the first bar was.
void Bars::erase() {
  if (shown_ == 0) return;
  fmt::print(stderr, "\r");
  for (; shown_ > 1; --shown_) fmt::print(stderr, "\033[A");
  fmt::print(stderr, "\033[J");
  shown_ = 0;
}

void Bars::show() {
  for (const auto& [run, bar] : bars_) fmt::print(stderr, "{}{}", shown_++ > 0 ? "\n" : "", bar);
}

void Bars::draw(const void* run, const std::string& bar) {
  const std::lock_guard lock(mutex_);
  if (!terminal_) {
    fmt::print(stderr, "{}\n", bar);
    return;
  }
  const auto is_its = [&](const auto& one) { return one.first == run; };
  const auto found = std::find_if(bars_.begin(), bars_.end(), is_its);
  if (found == bars_.end()) {
    bars_.emplace_back(run, bar);
  } else {
    found->second = bar;
  }
  erase();
  show();
}

void Bars::remove(const void* run) {
  const std::lock_guard lock(mutex_);
  erase();
  std::erase_if(bars_, [&](const auto& one) { return one.first == run; });
  show();
}

void Bars::line(const std::string& text) {
  const std::lock_guard lock(mutex_);
  erase();
  fmt::print(stderr, "{}\n", text);
  show();
}

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      bars_(options_.bars != nullptr ? *options_.bars : own_bars_),
      last_drawn_(Clock::now()) {}

Progress::~Progress() {
  bars_.remove(this);
}

void Progress::show(const Event& event) {
  if (!options_.quiet) std::visit([&](const auto& kind) { on(kind); }, event);
}

void Progress::on(const Loading& /*event*/) {
  if (!is_one_of_many()) line("reading the data");
}

void Progress::on(const RunStarted& event) {
  rounds_ = event.rounds;
  if (is_one_of_many()) return;
  line(fmt::format("{}: {} on {}, {}, {} training samples", event.name, event.method, event.dataset,
                   event.partition, event.train_samples));
  if (event.dropped_keys)
    line(fmt::format("ignored keys of the recipe: {}", fmt::join(*event.dropped_keys, ", ")));
}

void Progress::on(const RoundStarted& event) {
  const bool is_first = !round_;
  round_ = event.round;
  clients_in_round_ = event.clients.size();
  finished_ = 0;
  running_.clear();
  if (is_first) {
    start_ = Clock::now();
    at_hand_ = rounds_done();  // a resumed run begins in the middle
  }
}

void Progress::on(const ClientProgress& event) {
  running_[event.client] = event.fraction;
  draw();
}

void Progress::on(const ClientFinished& event) {
  const bool is_trained = event.origin == Origin::kTrained;
  running_.erase(event.client);
  ++finished_;
  if (!is_trained && *round_ > 0) at_hand_ += 1 / static_cast<double>(clients_in_round_);
  if (rounds_ == 1 && is_trained && !is_one_of_many()) {
    line(fmt::format("client {} sent {:.1f} KB after {} samples, {:.1f} s of one core", event.client,
                     static_cast<double>(event.upload_bytes) / 1000, event.samples, event.seconds));
  }
  draw();
}

void Progress::on(const ClientLost& event) {
  line(fmt::format("client {} did not answer", event.client));
}

void Progress::on(const RoundFinished& event) {
  if (!event.scores || is_one_of_many()) return;
  line(fmt::format("round {}/{}: {} uploads fused in {:.0f} ms, accuracy {:.2f} %{}{}{}", event.round,
                   rounds_, event.uploads, 1000 * event.aggregation_seconds, 100 * event.scores->accuracy,
                   own_models(*event.scores), epsilon(event), workers(event)));
}

void Progress::on(const Warning& event) {
  line(event.text);
}

double Progress::fraction_of_round() const {
  double done = static_cast<double>(finished_);
  for (const auto& [client, part] : running_) done += part;
  return clients_in_round_ == 0 ? 1 : std::min(1.0, done / static_cast<double>(clients_in_round_));
}

double Progress::rounds_done() const {
  // A round 0 counts as none.
  return *round_ > 0 ? static_cast<double>(*round_ - 1) + fraction_of_round() : 0;
}

std::string Progress::time_left() const {
  const double done = rounds_done();
  const auto rounds = static_cast<double>(rounds_);
  if (is_one_of_many()) return options_.time_left(done / rounds, at_hand_ / rounds);
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double speed = (done - at_hand_) / std::max(elapsed, 1e-3);
  return speed > 0 && elapsed > 1 ? fmt::format(", {} left", short_duration((rounds - done) / speed)) : "";
}

std::string Progress::bar() const {
  const size_t width = is_one_of_many() ? 16 : 30;
  const double done = fraction_of_round();
  const auto full = static_cast<size_t>(done * static_cast<double>(width));
  std::string cells;
  for (size_t i = 0; i < width; ++i) cells += i < full ? "█" : "░";
  const std::string where = rounds_ > 1 ? fmt::format("round {}/{} ", *round_, rounds_) : "";
  return fmt::format("{}{}{} {:3.0f} %  {}/{} clients{}", options_.label, where, cells, 100 * done, finished_,
                     clients_in_round_, time_left());
}

void Progress::draw() {
  const auto now = Clock::now();
  const std::chrono::milliseconds elsewhere = std::chrono::seconds(is_one_of_many() ? 30 : 5);
  if (now - last_drawn_ < (bars_.on_terminal() ? std::chrono::milliseconds(100) : elsewhere)) return;
  last_drawn_ = now;
  bars_.draw(this, bar());
}

}  // namespace bitfed::cli
