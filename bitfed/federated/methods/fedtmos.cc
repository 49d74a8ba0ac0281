// FedTMOS (How et al., "FedTMOS: efficient one-shot federated learning with Tsetlin machine", ICLR 2025): the
// clients' class-wise weight vectors are scaled, clustered, and regrouped into a few server models whose
// classes lie far apart. docs/methods/fedtmos.md lists the differences from the paper.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "bitfed/base/error.h"
#include "bitfed/federated/arithmetic/kmeans.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/tsetlin/tsetlin_server.h"

namespace bitfed {
namespace {

constexpr size_t kAuto = 0;

struct FedtmosOptions {
  std::vector<size_t> server_models;  // phi, for each specialist; kAuto: see max_vectors_per_class
  size_t clusters = 30;               // k; kAuto: half the number of vectors
  double gini_threshold = 0.5;        // sigma
  bool or_top_two = false;  // actions = "or2": as in the paper's text; "best": of the largest holder
  Normalise normalise = Normalise::kTraining;
  uint64_t seed = 0;
};

// One client's weights of one class, scaled.
struct Vector {
  uint32_t client;
  uint16_t label;
  uint32_t samples;
  const ClassBank* bank;
  size_t point;  // index of its scaled weights
};

struct Vectors {
  std::vector<Vector> list;
  std::vector<std::vector<double>> weights;
};

// Section 4.2.1: x is the mean over clients of sum p^2, applied only where it exceeds sigma.
double gini_scale(const Uploads& uploads, double threshold) {
  double sum = 0;
  for (const auto& [client, upload] : uploads) {
    const auto total = static_cast<double>(upload.total_samples());
    for (const uint32_t samples : upload.samples) sum += (samples / total) * (samples / total);
  }
  const double mean = sum / static_cast<double>(uploads.size());
  return mean > threshold ? mean : 1;
}

// theta <- trunc(x * theta * |D_class| / |D|). Vectors whose mean weight falls below 1 are dropped.
Vectors whole_vectors(const Uploads& uploads, size_t specialist) {
  Vectors vectors;
  for (const auto& [client, upload] : uploads) {
    for (size_t i = 0; i < upload.classes.size(); ++i) {
      const ClassBank& bank = upload.banks[specialist][i];
      vectors.list.push_back({client, upload.classes[i], upload.samples[i], &bank, vectors.weights.size()});
      vectors.weights.emplace_back(bank.weights.begin(), bank.weights.end());
    }
  }
  return vectors;
}

Vectors scaled_vectors(const Uploads& uploads, size_t specialist, double scale, size_t* dropped) {
  Vectors vectors;
  for (const auto& [client, upload] : uploads) {
    const auto total = static_cast<double>(upload.total_samples());
    for (size_t i = 0; i < upload.classes.size(); ++i) {
      const ClassBank& bank = upload.banks[specialist][i];
      std::vector<double> weights;
      weights.reserve(bank.weights.size());
      double sum = 0;
      for (const int32_t weight : bank.weights) {
        weights.push_back(std::trunc(scale * weight * upload.samples[i] / total));
        sum += weights.back();
      }
      if (sum < static_cast<double>(weights.size())) {
        ++*dropped;
        continue;
      }
      vectors.list.push_back({client, upload.classes[i], upload.samples[i], &bank, vectors.weights.size()});
      vectors.weights.push_back(std::move(weights));
    }
  }
  return vectors;
}

// With ten restarts the inertia of k-means still differs by 20 % between seeds: it gets as many restarts as
// take a few milliseconds, up to 100. The cost of one is proportional to vectors * clusters * clauses.
size_t kmeans_restarts(const Vectors& vectors, size_t clusters) {
  constexpr size_t kBudget = 8'000'000;
  const size_t one = vectors.weights.size() * clusters * vectors.weights.front().size();
  return std::clamp<size_t>(kBudget / one, 10, 100);
}

// The largest number of vectors of a class: with this many models, no two vectors of a class share a model.
size_t max_vectors_per_class(const std::vector<Vector>& vectors) {
  std::map<uint16_t, size_t> counts;
  size_t max = 1;
  for (const Vector& vector : vectors) max = std::max(max, ++counts[vector.label]);
  return max;
}

// A server model under construction: the vectors of each class, and the mean of their clusters' centroids.
struct ServerModel {
  std::map<uint16_t, std::vector<const Vector*>> members;
  std::map<uint16_t, std::vector<double>> means;
  std::set<size_t> clusters;

  void add(const Vector& vector, size_t cluster, const std::vector<double>& centroid) {
    std::vector<const Vector*>& held = members[vector.label];
    held.push_back(&vector);
    std::vector<double>& mean = means[vector.label];
    mean.resize(centroid.size());
    const auto count = static_cast<double>(held.size());
    for (size_t d = 0; d < mean.size(); ++d) mean[d] += (centroid[d] - mean[d]) / count;
    clusters.insert(cluster);
  }

  // calculate_avg_link: the mean squared distance between the classes if `centroid` were added as a new
  // class.
  double separation_with(const std::vector<double>& centroid) const {
    double sum = 0;
    size_t pairs = 0;
    for (auto a = means.begin(); a != means.end(); ++a) {
      for (auto b = std::next(a); b != means.end(); ++b, ++pairs)
        sum += squared_distance(a->second, b->second);
      sum += squared_distance(a->second, centroid);
      ++pairs;
    }
    return pairs == 0 ? 0 : sum / static_cast<double>(pairs);
  }
};

// find_best of Algorithm 2: of the models without the class, the one with the largest separation; the first
// on ties. models.size() if all have the class.
size_t find_best(const std::vector<ServerModel>& models, uint16_t label,
                 const std::vector<double>& centroid) {
  size_t best = models.size();
  double largest = -1;
  for (size_t i = 0; i < models.size(); ++i) {
    if (models[i].members.contains(label)) continue;
    const double separation = models[i].separation_with(centroid);
    if (separation > largest) {
      largest = separation;
      best = i;
    }
  }
  return best;
}

// find_least_cc of Algorithm 2: fewest distinct classes, then fewest clusters.
size_t find_least_cc(const std::vector<ServerModel>& models) {
  const auto crowd = [](const ServerModel& model) {
    return std::pair(model.members.size(), model.clusters.size());
  };
  const auto found =
      std::min_element(models.begin(), models.end(),
                       [&](const ServerModel& a, const ServerModel& b) { return crowd(a) < crowd(b); });
  return static_cast<size_t>(found - models.begin());
}

// The indices of the clusters by ascending number of distinct classes; on ties the one with the most samples
// first. The first clusters shape the models, and the order in which k-means numbers its clusters is
// arbitrary.
std::vector<size_t> cluster_order(const std::vector<Vector>& vectors, const Clustering& clustering) {
  std::vector<std::set<uint16_t>> classes(clustering.centroids.size());
  std::vector<uint64_t> samples(clustering.centroids.size());
  for (size_t i = 0; i < vectors.size(); ++i) {
    classes[clustering.cluster[i]].insert(vectors[i].label);
    samples[clustering.cluster[i]] += vectors[i].samples;
  }
  std::vector<size_t> order(classes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return classes[a].size() != classes[b].size() ? classes[a].size() < classes[b].size()
                                                  : samples[a] > samples[b];
  });
  return order;
}

// reassign_weights of Algorithm 2. Clusters of few classes first; within a cluster by class. A vector goes to
// the best model without its class, or to the emptiest one.
std::vector<ServerModel> regroup(const std::vector<Vector>& vectors, const Clustering& clustering,
                                 size_t count) {
  std::vector<ServerModel> models(count);
  for (const size_t cluster : cluster_order(vectors, clustering)) {
    std::vector<const Vector*> members;
    for (size_t i = 0; i < vectors.size(); ++i) {
      if (clustering.cluster[i] == cluster) members.push_back(&vectors[i]);
    }
    std::stable_sort(members.begin(), members.end(),
                     [](const Vector* a, const Vector* b) { return a->label < b->label; });
    for (const Vector* vector : members) {
      const std::vector<double>& centroid = clustering.centroids[cluster];
      size_t chosen = find_best(models, vector->label, centroid);
      if (chosen == models.size()) chosen = find_least_cc(models);
      models[chosen].add(*vector, cluster, centroid);
    }
  }
  return models;
}

// average_models of Algorithm 3. Clause j of one client and clause j of another are unrelated patterns: their
// OR hardly ever fires, so by default the actions of the largest holder are kept.
ClassBank average(const Vectors& vectors, std::vector<const Vector*> members, bool or_top_two) {
  std::stable_sort(members.begin(), members.end(),
                   [](const Vector* a, const Vector* b) { return a->samples > b->samples; });
  ClassBank bank;
  bank.actions = members[0]->bank->actions;
  if (or_top_two && members.size() > 1) {
    const BitMatrix& second = members[1]->bank->actions;
    for (size_t row = 0; row < second.rows(); ++row) {
      for (size_t w = 0; w < second.stride(); ++w) bank.actions.row(row)[w] |= second.row(row)[w];
    }
  }
  for (size_t clause = 0; clause < bank.actions.rows(); ++clause) {
    double sum = 0;
    for (const Vector* member : members) sum += vectors.weights[member->point][clause];
    bank.weights.push_back(static_cast<int32_t>(std::lround(sum / static_cast<double>(members.size()))));
  }
  // The clauses are the largest holder's, so its mean sums apply, scaled by the change of its weights.
  const ClassBank& largest = *members[0]->bank;
  const auto total = [](const std::vector<int32_t>& weights) {
    return std::accumulate(weights.begin(), weights.end(), 0.0);
  };
  const auto left = static_cast<float>(total(bank.weights) / total(largest.weights));
  bank.positive_mean = left * largest.positive_mean;
  bank.negative_mean = left * largest.negative_mean;
  return bank;
}

// Specialists are fused independently: each has its own vectors, clusters and server models.
Fused fuse(const FedtmosOptions& options, const TsetlinRecipe& recipe, const Uploads& uploads) {
  Fused fused;
  const double scale = gini_scale(uploads, options.gini_threshold);
  size_t dropped = 0;
  size_t kept = 0;
  size_t whole = 0;
  for (size_t s = 0; s < recipe.specialists.size(); ++s) {
    Vectors vectors = scaled_vectors(uploads, s, scale, &dropped);
    if (vectors.list.empty()) {
      // Too few samples or epochs for scaled weights. What is left of the paper's method beats an empty
      // model.
      vectors = whole_vectors(uploads, s);
      dropped -= vectors.list.size();
      whole += vectors.list.size();
    }
    kept += vectors.list.size();
    const RandomStream random = RandomStream({options.seed, "fedtmos-kmeans"}).substream(s);
    const size_t clusters = options.clusters == kAuto ? (vectors.list.size() + 1) / 2 : options.clusters;
    const Clustering clustering =
        kmeans(vectors.weights, clusters, kmeans_restarts(vectors, clusters), random);
    const size_t models =
        options.server_models[s] == kAuto ? max_vectors_per_class(vectors.list) : options.server_models[s];
    for (const ServerModel& model : regroup(vectors.list, clustering, models)) {
      if (model.members.empty()) continue;
      TsetlinMember member = empty_member(recipe, s, recipe.specialists[s].options.clauses);
      std::vector<ClassBank> banks;
      for (const auto& [label, members] : model.members) {
        banks.push_back(average(vectors, members, options.or_top_two));
        place_bank(banks.back(), label, &member);
      }
      normalise_sums(options.normalise, recipe.specialists[s].options.threshold, banks, &member);
      fused.members.push_back(std::move(member));
    }
  }
  if (whole > 0) {
    fused.notes.push_back(fmt::format(
        "do not trust this model: the weights of all {} class vectors vanish when they are scaled by the class's "
        "share of a client's samples, and were taken as they are; train longer (client.epochs), or with more "
        "samples per client",
        whole));
  }
  fused.notes.push_back(fmt::format(
      "{} class vectors regrouped, {} dropped because their scaled weights vanish", kept, dropped));
  fused.notes.push_back(
      fmt::format("weights scaled by the mean Gini index: {}",
                  scale == 1 ? "no, it is below the threshold or 1" : fmt::format("{:.4f}", scale)));
  if (!options.or_top_two) {
    fused.notes.emplace_back(
        "differs from the paper's text: the actions of the largest holder, not the OR of the top two");
  }
  if (options.normalise == Normalise::kTraining) {
    fused.notes.emplace_back(
        "differs from the paper: class sums divided by their span over the training samples, not over the "
        "test set; a model is scaled by the fraction of the classes that it holds");
  } else if (options.normalise == Normalise::kFixed) {
    fused.notes.emplace_back(
        "differs from the paper: class sums divided by T, not by their span over the test set");
  }
  return fused;
}

// Whether the key is "auto" instead of a whole number.
bool is_auto(const Config& section, const std::string& key) {
  const std::vector<std::string> known = {"auto"};
  return section.is_string(key) && section.choice(key, "auto", known) == "auto";
}

std::vector<size_t> read_server_models(const Config& section, size_t specialists) {
  if (is_auto(section, "server_models")) return std::vector<size_t>(specialists, kAuto);
  std::vector<size_t> models;
  for (const double budget : read_budget(section, specialists, 1)) {
    if (budget != std::floor(budget)) {
      throw input_error("{}: found {}, expected whole numbers, or \"auto\"", section.where("server_models"),
                        budget);
    }
    models.push_back(static_cast<size_t>(budget));
  }
  return models;
}

}  // namespace

std::unique_ptr<Method> make_fedtmos(const MethodContext& context) {
  const Config section = context.recipe.section("method");
  const size_t specialists = read_specialists(context.recipe, context.prototype).size();
  FedtmosOptions options;
  options.server_models = read_server_models(section, specialists);
  options.clusters =
      is_auto(section, "clusters") ? kAuto : static_cast<size_t>(section.integer("clusters", 30, 1, 100000));
  options.gini_threshold = section.number("gini_threshold", 0.5, 0, 1);
  const std::vector<std::string> actions = {"best", "or2"};
  options.or_top_two = section.choice("actions", "best", actions) == "or2";
  options.normalise = read_normalise(section, "training");
  options.seed = context.seed;
  return make_one_shot_method(context, [options](const TsetlinRecipe& recipe, const Uploads& uploads) {
    return fuse(options, recipe, uploads);
  });
}

}  // namespace bitfed
