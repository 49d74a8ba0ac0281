#pragma once

#include <cstddef>
#include <vector>

#include "bitfed/base/hash/random.h"

namespace bitfed {

struct Clustering {
  std::vector<size_t> cluster;  // of each point
  std::vector<std::vector<double>> centroids;
  double inertia = 0;  // sum of the squared distances of the points to their centroids
};

// Lloyd's k-means with k-means++ initialisation (Arthur and Vassilvitskii, 2007), the best of `restarts` by
// inertia. At most as many clusters as points; all points have the same length. Of more than 1024 points, a
// random 1024 decide the centroids, and every point goes to the nearest: the time grows with the number of
// points, not with the number of iterations that they need.
Clustering kmeans(const std::vector<std::vector<double>>& points, size_t clusters, size_t restarts,
                  const RandomStream& random);

double squared_distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace bitfed
