#include "bitfed/federated/arithmetic/kmeans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "bitfed/bits/kernels.h"

namespace bitfed {
namespace {

using Points = std::vector<std::vector<double>>;

constexpr size_t kMaxPoints = 1024;  // see kmeans
constexpr int kMaximumIterations = 300;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Bounds are sums of rounded values; only points clearly within their bounds are skipped.
constexpr double kSlack = 1 + 1e-9;

// One run of Lloyd's algorithm with Hamerly's bounds ("Making k-means even faster", 2010): a point whose own
// centroid is certainly nearer than all others is skipped. The result is the same as without bounds. Memory:
// three values per point.
class Run {
 public:
  Run(const Points& points, size_t clusters, RandomStream random)
      : points_(points),
        cluster_(points.size()),
        own_(points.size(), kInfinity),
        second_(points.size(), kInfinity) {
    seed(clusters, random);
    for (int i = 0; i < kMaximumIterations; ++i) {
      recentre();
      if (!assign()) break;
    }
  }

  double inertia() const {
    double sum = 0;
    for (size_t i = 0; i < points_.size(); ++i) sum += squared_distance(points_[i], centroids_[cluster_[i]]);
    return sum;
  }

  Clustering result() && { return {std::move(cluster_), std::move(centroids_), 0}; }

 private:
  // k-means++: each further centroid is a point drawn with probability proportional to its squared distance
  // to the nearest centroid so far. Afterwards every point has its cluster.
  void seed(size_t clusters, RandomStream& random) {
    size_t chosen = random.below(static_cast<uint32_t>(points_.size()));
    for (;;) {
      centroids_.push_back(points_[chosen]);
      double total = 0;
      for (size_t i = 0; i < points_.size(); ++i) {
        consider(i, centroids_.size() - 1);
        total += own_[i];
      }
      if (centroids_.size() == clusters) break;
      double left = random.uniform() * total;
      chosen = 0;
      while (chosen + 1 < points_.size() && left >= own_[chosen]) left -= own_[chosen++];
    }
    for (double& distance : own_) distance = std::sqrt(distance);
    for (double& distance : second_) distance = std::sqrt(distance);
  }

  // Assigns the point to the centroid if it is nearer than all before; the first on ties.
  void consider(size_t point, size_t centroid) {
    const double distance = squared_distance(points_[point], centroids_[centroid]);
    if (distance < own_[point]) {
      second_[point] = own_[point];
      own_[point] = distance;
      cluster_[point] = centroid;
    } else {
      second_[point] = std::min(second_[point], distance);
    }
  }

  // Moves the centroids to the means of their points; one without points stays. Widens the bounds
  // accordingly.
  void recentre() {
    Points means(centroids_.size(), std::vector<double>(points_[0].size()));
    std::vector<size_t> counts(means.size());
    for (size_t i = 0; i < points_.size(); ++i) {
      ++counts[cluster_[i]];
      std::vector<double>& sum = means[cluster_[i]];
      for (size_t d = 0; d < sum.size(); ++d) sum[d] += points_[i][d];
    }
    std::vector<double> moved(means.size());
    for (size_t c = 0; c < means.size(); ++c) {
      if (counts[c] == 0) continue;
      for (double& value : means[c]) value /= static_cast<double>(counts[c]);
      moved[c] = std::sqrt(squared_distance(means[c], centroids_[c]));
      centroids_[c].swap(means[c]);
    }
    const double max_move = *std::max_element(moved.begin(), moved.end());
    for (size_t i = 0; i < points_.size(); ++i) {
      own_[i] += moved[cluster_[i]];
      second_[i] -= max_move;
    }
  }

  // Moves every point to its nearest centroid; true if any moved.
  bool assign() {
    bool moved = false;
    for (size_t i = 0; i < points_.size(); ++i) {
      if (own_[i] * kSlack < second_[i]) continue;
      // The upper bound is loose: try again with the exact distance.
      own_[i] = std::sqrt(squared_distance(points_[i], centroids_[cluster_[i]]));
      if (own_[i] * kSlack < second_[i]) continue;
      const size_t before = cluster_[i];
      own_[i] = second_[i] = kInfinity;
      for (size_t c = 0; c < centroids_.size(); ++c) consider(i, c);
      own_[i] = std::sqrt(own_[i]);
      second_[i] = std::sqrt(second_[i]);
      moved |= cluster_[i] != before;
    }
    return moved;
  }

  const Points& points_;
  Points centroids_;
  std::vector<size_t> cluster_;
  std::vector<double> own_;     // upper bound of a point's distance to its own centroid …
  std::vector<double> second_;  // … and lower bound of the distance to any other
};

// The index of the nearest centroid; the first on ties.
size_t nearest(const Points& centroids, const std::vector<double>& point) {
  size_t best = 0;
  double least = kInfinity;
  for (size_t c = 0; c < centroids.size(); ++c) {
    const double distance = squared_distance(point, centroids[c]);
    if (distance >= least) continue;
    least = distance;
    best = c;
  }
  return best;
}

// kMaxPoints of the points, in their order.
Points sample_of(const Points& points, RandomStream random) {
  std::vector<uint32_t> order(points.size());
  std::iota(order.begin(), order.end(), 0u);
  random.shuffle(std::span<uint32_t>(order));
  std::sort(order.begin(), order.begin() + kMaxPoints);
  Points sample;
  for (size_t i = 0; i < kMaxPoints; ++i) sample.push_back(points[order[i]]);
  return sample;
}

}  // namespace

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  return kernels().squared_distance(a.data(), b.data(), a.size());
}

Clustering kmeans(const Points& points, size_t clusters, size_t restarts, const RandomStream& random) {
  if (points.empty()) return {};
  if (points.size() > kMaxPoints) {
    Clustering all = kmeans(sample_of(points, random.substream(restarts)), clusters, restarts, random);
    all.cluster.clear();
    all.inertia = 0;
    for (const std::vector<double>& point : points) {
      all.cluster.push_back(nearest(all.centroids, point));
      all.inertia += squared_distance(point, all.centroids[all.cluster.back()]);
    }
    return all;
  }
  Clustering best;
  best.inertia = kInfinity;
  for (size_t i = 0; i < restarts; ++i) {
    Run run(points, std::min(clusters, points.size()), random.substream(i));
    const double inertia = run.inertia();
    if (inertia >= best.inertia) continue;
    best = std::move(run).result();
    best.inertia = inertia;
  }
  return best;
}

}  // namespace bitfed
