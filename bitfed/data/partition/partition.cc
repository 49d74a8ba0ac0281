#include "bitfed/data/partition/partition.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/random.h"
#include "bitfed/base/names.h"
#include "bitfed/data/partition/legacy_random.h"

namespace bitfed {
namespace {

using Shares = std::vector<double>;                    // of one class: each client's part, with sum 1
using Allotment = std::vector<std::vector<uint32_t>>;  // client -> the labels it holds

constexpr uint32_t kMaximumClients = 1'000'000;
constexpr uint32_t kMaximumClasses = 65'536;  // labels have 16 bits
constexpr double kMinAlpha = 1e-3;
constexpr double kMaxAlpha = 1e6;
constexpr int kMaximumDraws = 1'000;

// Enough for clients of equal size; more would make the cost quadratic in the number of clients.
constexpr uint32_t kMaximumBalancingSteps = 100;

// The input of a kind: the training data by class, the spec, and the one stream of all draws.
struct Task {
  const Dataset& train;
  const PartitionSpec& spec;
  Partition classes;  // class -> indices of its samples, ascending
  RandomStream stream;
  uint64_t seed;
  std::optional<LegacyRandom> legacy;  // allotment = "paper": the paper's own generator
};

// class -> its samples; labels may come from a caller that did not check them.
Partition samples_by_class(const Dataset& train) {
  Partition classes(train.class_count());
  for (uint32_t i = 0; i < train.size(); ++i) {
    if (train.labels[i] >= classes.size()) {
      throw input_error("{}: label of sample {} is {}, expected one below {} (the number of classes)",
                        train.name, i, train.labels[i], classes.size());
    }
    classes[train.labels[i]].push_back(i);
  }
  return classes;
}

// The begin of part `index` of `count` when `total` items are split into parts whose sizes differ by at most
// one.
size_t even_cut(size_t total, size_t index, size_t count) {
  return total / count * index + std::min(index, total % count);
}

// Splits `samples` into even blocks, one for each client of `holders`.
void deal_evenly(std::span<const uint32_t> samples, std::span<const uint32_t> holders, Partition& partition) {
  for (size_t i = 0; i < holders.size(); ++i) {
    const auto block = samples.subspan(0, even_cut(samples.size(), i + 1, holders.size()))
                           .subspan(even_cut(samples.size(), i, holders.size()));
    auto& own = partition[holders[i]];
    own.insert(own.end(), block.begin(), block.end());
  }
}

Partition deal_iid(Task& task) {
  std::vector<uint32_t> order(task.train.size());
  std::iota(order.begin(), order.end(), 0);
  task.stream.shuffle(std::span(order));
  std::vector<uint32_t> everyone(task.spec.clients);
  std::iota(everyone.begin(), everyone.end(), 0);
  Partition partition(task.spec.clients);
  deal_evenly(order, everyone, partition);
  return partition;
}

// Dirichlet(alpha) over the clients that `open` allows (at least one): gamma variates divided by their sum.
// For a small alpha all of them can underflow to zero; the distribution's limit is then one uniformly drawn
// client.
Shares draw_shares(double alpha, const std::vector<bool>& open, RandomStream& stream) {
  Shares shares(open.size());
  for (double& share : shares) share = stream.gamma(alpha);
  std::vector<uint32_t> candidates;
  double sum = 0;
  for (uint32_t client = 0; client < shares.size(); ++client) {
    if (open[client]) candidates.push_back(client);
    shares[client] = open[client] ? shares[client] : 0;
    sum += shares[client];
  }
  if (sum < std::numeric_limits<double>::min()) {
    std::fill(shares.begin(), shares.end(), 0.0);
    shares[candidates[stream.below(static_cast<uint32_t>(candidates.size()))]] = sum = 1;
  }
  for (double& share : shares) share /= sum;
  return shares;
}

// Splits a class of `total` samples at floor(total * cumulative share); the last part ends at `total`. Every
// sample is assigned once, whatever the rounding of the shares. A client without a share gets none.
std::vector<size_t> counts_of(const Shares& shares, size_t total) {
  std::vector<size_t> counts(shares.size());
  size_t last = shares.size() - 1;
  while (last > 0 && shares[last] <= 0) --last;
  double cumulated = 0;
  size_t begin = 0;
  for (size_t client = 0; client <= last; ++client) {
    cumulated += shares[client];
    const auto cut = static_cast<size_t>(cumulated * static_cast<double>(total));
    const size_t end = client == last ? total : std::min(cut, total);
    counts[client] = end - begin;
    begin = end;
  }
  return counts;
}

// class -> client -> samples
using Counts = std::vector<std::vector<size_t>>;

std::vector<size_t> client_sizes(const Counts& counts, size_t clients) {
  std::vector<size_t> sizes(clients);
  for (const auto& row : counts) {
    for (size_t client = 0; client < clients; ++client) sizes[client] += row[client];
  }
  return sizes;
}

// Yurochkin et al. (ICML 2019) as commonly run, for instance by Li et al. (ICDE 2022): a client that holds
// its N / clients gets no part of the classes that follow.
Counts draw_plain_counts(Task& task) {
  const size_t clients = task.spec.clients;
  std::vector<size_t> held(clients);
  Counts counts;
  for (const auto& samples : task.classes) {
    if (samples.empty()) continue;
    std::vector<bool> open(clients);
    for (size_t client = 0; client < clients; ++client)
      open[client] = held[client] * clients < task.train.size();
    counts.push_back(counts_of(draw_shares(task.spec.alpha, open, task.stream), samples.size()));
    for (size_t client = 0; client < clients; ++client) held[client] += counts.back()[client];
  }
  return counts;
}

// Divides each client's shares by their sum; a client without any stays without.
void normalise_columns(std::vector<Shares>& matrix) {
  Shares sums(matrix.front().size());
  for (const Shares& row : matrix) {
    for (size_t client = 0; client < sums.size(); ++client) sums[client] += row[client];
  }
  for (Shares& row : matrix) {
    for (size_t client = 0; client < sums.size(); ++client) {
      if (sums[client] >= std::numeric_limits<double>::min()) row[client] /= sums[client];
    }
  }
}

void normalise_rows(std::vector<Shares>& matrix) {
  for (Shares& row : matrix) {
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (double& share : row) share /= sum;
  }
}

// FedTMOS: J times the matrix (class, client) is divided by its row sums and by its column sums, both taken
// before dividing. The rows of a Dirichlet draw sum to one, so the first division changes columns only and
// leaves them summing to one, the second changes rows only, and so on: J / 2 Sinkhorn steps, which end with
// the rows (every class assigned completely) for an even J. An odd J would end with the columns and assign
// more of a class than exists; it gets half a step more.
Counts draw_balanced_counts(Task& task) {
  const std::vector<bool> open(task.spec.clients, true);
  std::vector<Shares> matrix;
  for (const auto& samples : task.classes) {
    if (samples.empty()) continue;
    matrix.push_back(task.legacy ? task.legacy->dirichlet(task.spec.alpha, task.spec.clients)
                                 : draw_shares(task.spec.alpha, open, task.stream));
  }
  const uint32_t steps = std::min((task.spec.clients + 1) / 2, kMaximumBalancingSteps);
  for (uint32_t step = 0; step < steps; ++step) {
    normalise_columns(matrix);
    normalise_rows(matrix);
  }
  Counts counts;
  size_t row = 0;
  for (const auto& samples : task.classes) {
    if (!samples.empty()) counts.push_back(counts_of(matrix[row++], samples.size()));
  }
  return counts;
}

// Draws until every client has `minimum` samples.
Counts redraw(Task& task, Counts (*draw)(Task&), size_t minimum) {
  const PartitionSpec& spec = task.spec;
  size_t best = 0;
  for (int attempt = 0; attempt < kMaximumDraws; ++attempt) {
    Counts counts = draw(task);
    const auto sizes = client_sizes(counts, spec.clients);
    const size_t smallest = *std::min_element(sizes.begin(), sizes.end());
    if (smallest >= minimum) return counts;
    best = std::max(best, smallest);
  }
  throw input_error(
      "partition.alpha = {:g}: in {} draws of {} over {} clients the smallest client had {} samples at best, "
      "expected {}; take a larger alpha or fewer clients",
      spec.alpha, kMaximumDraws, spec.kind, spec.clients, best, minimum);
}

// Contiguous blocks of each class's samples, in the order of the clients.
Partition deal_counts(const Task& task, const Counts& counts) {
  Partition partition(task.spec.clients);
  size_t row = 0;
  for (const auto& samples : task.classes) {
    if (samples.empty()) continue;
    auto next = samples.begin();
    for (size_t client = 0; client < partition.size(); ++client) {
      const auto end = next + static_cast<std::ptrdiff_t>(counts[row][client]);
      partition[client].insert(partition[client].end(), next, end);
      next = end;
    }
    ++row;
  }
  return partition;
}

// The counts are drawn before the samples are shuffled, so that they depend only on the class sizes.
Partition deal_dirichlet(Task& task) {
  const size_t needed = size_t{task.spec.minimum} * task.spec.clients;
  if (needed > task.train.size()) {
    throw input_error("partition.minimum = {}: {} clients need {} samples, {} has {}", task.spec.minimum,
                      task.spec.clients, needed, task.train.name, task.train.size());
  }
  const Counts counts = redraw(task, draw_plain_counts, std::max<uint32_t>(task.spec.minimum, 1));
  for (auto& samples : task.classes) task.stream.shuffle(std::span(samples));
  return deal_counts(task, counts);
}

// Contiguous blocks of each class, as in the paper's code.
Partition deal_dirichlet_balanced(Task& task) {
  if (task.spec.allotment == "paper") {
    if (task.spec.alpha >= 1 || task.seed > UINT32_MAX) {
      throw input_error("partition.allotment = \"paper\": expected an alpha below 1 and a seed below 2^32");
    }
    task.legacy.emplace(static_cast<uint32_t>(task.seed));
  }
  return deal_counts(task, redraw(task, draw_balanced_counts, 1));
}

// The first `fixed` labels of a client are given; the others are drawn without replacement.
Allotment draw_allotment(Task& task, Allotment held, size_t fixed) {
  const auto classes = static_cast<uint32_t>(task.classes.size());
  for (auto& own : held) {
    std::vector<uint32_t> others;
    for (uint32_t label = 0; label < classes; ++label) {
      if (fixed == 0 || own.front() != label) others.push_back(label);
    }
    task.stream.shuffle(std::span(others));
    own.insert(own.end(), others.begin(),
               others.begin() + static_cast<std::ptrdiff_t>(task.spec.labels - fixed));
  }
  return held;
}

std::vector<std::vector<uint32_t>> holders_of(const Allotment& held, size_t classes) {
  std::vector<std::vector<uint32_t>> holders(classes);
  for (uint32_t client = 0; client < held.size(); ++client) {
    for (const uint32_t label : held[client]) holders[label].push_back(client);
  }
  return holders;
}

// A label that no client drew replaces the label with the most holders at one of its holders, as long as some
// label has two holders. A client's first `fixed` labels stay. If clients have fewer labels in total than the
// data, samples of labels without a holder are not assigned.
void cover_labels(Task& task, Allotment& held, size_t fixed) {
  for (uint32_t label = 0; label < task.classes.size(); ++label) {
    const auto holders = holders_of(held, task.classes.size());
    if (!holders[label].empty() || task.classes[label].empty()) continue;
    uint32_t common = 0;
    for (uint32_t other = 1; other < holders.size(); ++other) {
      if (holders[other].size() > holders[common].size()) common = other;
    }
    if (holders[common].size() < 2) return;
    std::vector<uint32_t*> candidates;
    for (const uint32_t client : holders[common]) {
      const auto found = std::find(held[client].begin(), held[client].end(), common);
      if (found >= held[client].begin() + static_cast<std::ptrdiff_t>(fixed)) candidates.push_back(&*found);
    }
    if (!candidates.empty()) *candidates[task.stream.below(static_cast<uint32_t>(candidates.size()))] = label;
  }
}

void check_labels(const Task& task) {
  if (task.spec.labels == 0 || task.spec.labels > task.classes.size()) {
    throw input_error("partition.labels = {}: expected 1 to {} (the classes of {})", task.spec.labels,
                      task.classes.size(), task.train.name);
  }
}

// Each label's samples, shuffled and split evenly among its holders.
Partition deal_allotment(Task& task, const Allotment& held) {
  Partition partition(held.size());
  const auto holders = holders_of(held, task.classes.size());
  for (size_t label = 0; label < holders.size(); ++label) {
    task.stream.shuffle(std::span(task.classes[label]));
    deal_evenly(task.classes[label], holders[label], partition);
  }
  return partition;
}

Partition deal_label_subset(Task& task) {
  check_labels(task);
  Allotment held = draw_allotment(task, Allotment(task.spec.clients), 0);
  cover_labels(task, held, 0);
  return deal_allotment(task, held);
}

// S(2), S(3) and S(4) as drawn by the authors of FedTMOS, once for all their seeds; each client is given as
// the digits of its labels.
constexpr std::array<std::array<const char*, 10>, 3> kPaperAllotments = {{
    {"03", "12", "25", "13", "48", "58", "68", "67", "38", "19"},
    {"023", "125", "289", "378", "134", "058", "679", "078", "348", "159"},
    {"0239", "1278", "2689", "0347", "0478", "4579", "0268", "1237", "0789", "0389"},
}};

Allotment paper_allotment(const Task& task) {
  const uint32_t labels = task.spec.labels;
  if (task.spec.clients != 10 || task.classes.size() != 10 || labels < 2 || labels > 4) {
    throw input_error(
        "partition.allotment = \"paper\": found {} labels, {} clients and {} classes, expected 2, 3 or 4 "
        "labels, 10 clients and 10 classes",
        labels, task.spec.clients, task.classes.size());
  }
  Allotment held;
  for (const std::string_view digits : kPaperAllotments[labels - 2]) {
    auto& own = held.emplace_back();
    for (const char digit : digits) own.push_back(static_cast<uint32_t>(digit - '0'));
  }
  return held;
}

Partition deal_classes(Task& task) {
  check_labels(task);
  if (task.spec.allotment == "paper") return deal_allotment(task, paper_allotment(task));
  if (task.spec.allotment != "random") {
    throw input_error("partition.allotment = \"{}\": expected \"random\" or \"paper\"", task.spec.allotment);
  }
  Allotment held(task.spec.clients);
  for (uint32_t client = 0; client < held.size(); ++client) {
    held[client].push_back(client % static_cast<uint32_t>(task.classes.size()));
  }
  held = draw_allotment(task, std::move(held), 1);
  cover_labels(task, held, 1);
  return deal_allotment(task, held);
}

// Groups without training samples (people who are only in the test data) are not clients.
Partition deal_column(Task& task) {
  const Dataset& train = task.train;
  if (train.groups.size() != train.size() || train.groups.empty()) {
    throw input_error("partition.kind = \"column\": {} has no column of people or devices", train.name);
  }
  Partition partition(train.group_names.size());
  for (uint32_t i = 0; i < train.size(); ++i) {
    if (train.groups[i] >= partition.size()) {
      throw input_error("{}: group of sample {} is {}, expected one below {}", train.name, i, train.groups[i],
                        partition.size());
    }
    partition[train.groups[i]].push_back(i);
  }
  std::erase_if(partition, [](const auto& own) { return own.empty(); });
  if (partition.size() < 2) {
    throw input_error(
        "partition.kind = \"column\": found one person, '{}', in the training rows of {}, "
        "expected at least two",
        train.group_names[train.groups.front()], train.name);
  }
  return partition;
}

struct Kind {
  const char* name;
  Partition (*deal)(Task&);
};

constexpr std::array<Kind, 6> kKinds = {{
    {"iid", deal_iid},
    {"dirichlet", deal_dirichlet},
    {"dirichlet-balanced", deal_dirichlet_balanced},
    {"label-subset", deal_label_subset},
    {"classes", deal_classes},
    {"column", deal_column},
}};

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

const Kind& find_kind(const std::string& name) {
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return kind;
  }
  throw input_error("partition.kind = \"{}\" is unknown{}", name, suggestion(name, kind_names()));
}

bool is_dirichlet(const PartitionSpec& spec) {
  return spec.kind == "dirichlet" || spec.kind == "dirichlet-balanced";
}

bool has_labels(const PartitionSpec& spec) {
  return spec.kind == "label-subset" || spec.kind == "classes";
}

void check(const PartitionSpec& spec, const Dataset& train) {
  if (train.size() == 0) throw input_error("{}: no training samples", train.name);
  if (is_dirichlet(spec) && !(spec.alpha >= kMinAlpha && spec.alpha <= kMaxAlpha)) {
    throw input_error("partition.alpha = {:g}: expected {:g} to {:g}", spec.alpha, kMinAlpha, kMaxAlpha);
  }
  if (spec.kind == "column") return;
  if (spec.clients == 0 || spec.clients > train.size()) {
    throw input_error("partition.clients = {}: expected 1 to {} (the training samples of {})", spec.clients,
                      train.size(), train.name);
  }
}

}  // namespace

PartitionSpec read_partition(const Config& config) {
  PartitionSpec spec;
  spec.kind = config.choice("kind", spec.kind, kind_names());
  if (spec.kind == "column") {
    spec.clients = 0;  // as many as the data has groups
    return spec;
  }
  spec.clients = static_cast<uint32_t>(config.integer("clients", spec.clients, 1, kMaximumClients));
  if (is_dirichlet(spec)) spec.alpha = config.number("alpha", spec.alpha, kMinAlpha, kMaxAlpha);
  if (spec.kind == "dirichlet")
    spec.minimum = static_cast<uint32_t>(config.integer("minimum", spec.minimum, 1));
  if (has_labels(spec)) {
    spec.labels = static_cast<uint32_t>(config.integer("labels", spec.labels, 1, kMaximumClasses));
  }
  if (spec.kind == "classes" || spec.kind == "dirichlet-balanced") {
    spec.allotment = config.choice("allotment", spec.allotment, std::vector<std::string>{"random", "paper"});
  }
  return spec;
}

Partition make_partition(const Dataset& train, const PartitionSpec& spec, uint64_t seed) {
  const Kind& kind = find_kind(spec.kind);
  check(spec, train);
  Task task{train, spec, samples_by_class(train), RandomStream(StreamKey{seed, "partition"}), seed, {}};
  Partition partition = kind.deal(task);
  for (size_t client = 0; client < partition.size(); ++client) {
    if (partition[client].empty()) {
      throw input_error("partition.clients = {}: client {} is left without samples; take fewer clients",
                        spec.clients, client);
    }
    std::sort(partition[client].begin(), partition[client].end());
  }
  return partition;
}

std::vector<std::vector<uint32_t>> class_counts(const Dataset& train, const Partition& partition) {
  std::vector<std::vector<uint32_t>> counts(partition.size(), std::vector<uint32_t>(train.class_count()));
  for (size_t client = 0; client < partition.size(); ++client) {
    for (const uint32_t sample : partition[client]) ++counts[client][train.labels[sample]];
  }
  return counts;
}

std::string describe(const PartitionSpec& spec) {
  const std::string clients = fmt::format(", {} client{}", spec.clients, spec.clients == 1 ? "" : "s");
  if (spec.kind == "iid") return "IID" + clients;
  if (spec.kind == "dirichlet") return fmt::format("plain Dir({:g}){}", spec.alpha, clients);
  if (spec.kind == "dirichlet-balanced") return fmt::format("Dir({:g}){}", spec.alpha, clients);
  if (spec.kind == "label-subset") {
    return fmt::format("{} label{} each{}", spec.labels, spec.labels == 1 ? "" : "s", clients);
  }
  if (spec.kind == "classes") return fmt::format("S({}){}", spec.labels, clients);
  return spec.clients == 0 ? "by column" : "by column" + clients;
}

}  // namespace bitfed
