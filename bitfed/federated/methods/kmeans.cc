#include "bitfed/federated/methods/kmeans.h"

#include <algorithm>
#include <limits>

namespace bitfed {
namespace {

using Points = std::vector<std::vector<double>>;

constexpr int kMaximumIterations = 300;

// Each further centroid is a point drawn with probability proportional to its squared distance to the
// nearest one so far.
Points seed_centroids(const Points& points, size_t clusters, RandomStream random) {
  Points centroids = {points[random.below(static_cast<uint32_t>(points.size()))]};
  std::vector<double> nearest(points.size(), std::numeric_limits<double>::infinity());
  while (centroids.size() < clusters) {
    double total = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      nearest[i] = std::min(nearest[i], squared_distance(points[i], centroids.back()));
      total += nearest[i];
    }
    double left = random.uniform() * total;
    size_t chosen = 0;
    while (chosen + 1 < points.size() && left >= nearest[chosen]) left -= nearest[chosen++];
    centroids.push_back(points[chosen]);
  }
  return centroids;
}

// Moves every point to its nearest centroid, the lowest among equals; true if any moved.
bool assign(const Points& points, Clustering* clustering) {
  bool moved = false;
  clustering->inertia = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t c = 0; c < clustering->centroids.size(); ++c) {
      const double distance = squared_distance(points[i], clustering->centroids[c]);
      if (distance < least) {
        least = distance;
        best = c;
      }
    }
    moved |= clustering->cluster[i] != best;
    clustering->cluster[i] = best;
    clustering->inertia += least;
  }
  return moved;
}

// A cluster without points keeps its centroid.
void recentre(const Points& points, Clustering* clustering) {
  Points sums(clustering->centroids.size(), std::vector<double>(points[0].size()));
  std::vector<size_t> counts(sums.size());
  for (size_t i = 0; i < points.size(); ++i) {
    ++counts[clustering->cluster[i]];
    std::vector<double>& sum = sums[clustering->cluster[i]];
    for (size_t d = 0; d < sum.size(); ++d) sum[d] += points[i][d];
  }
  for (size_t c = 0; c < sums.size(); ++c) {
    if (counts[c] == 0) continue;
    for (double& value : sums[c]) value /= static_cast<double>(counts[c]);
    clustering->centroids[c] = std::move(sums[c]);
  }
}

Clustering lloyd(const Points& points, size_t clusters, const RandomStream& random) {
  Clustering clustering;
  clustering.centroids = seed_centroids(points, clusters, random);
  clustering.cluster.assign(points.size(), clusters);
  for (int i = 0; i < kMaximumIterations && assign(points, &clustering); ++i) recentre(points, &clustering);
  return clustering;
}

}  // namespace

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

Clustering kmeans(const Points& points, size_t clusters, size_t restarts, const RandomStream& random) {
  if (points.empty()) return {};
  Clustering best;
  best.inertia = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < restarts; ++i) {
    Clustering clustering = lloyd(points, std::min(clusters, points.size()), random.substream(i));
    if (clustering.inertia < best.inertia) best = std::move(clustering);
  }
  return best;
}

}  // namespace bitfed
