#include "bitfed/federated/arithmetic/kmeans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace bitfed {
namespace {

using ::testing::Each;
using ::testing::UnorderedElementsAre;

using Points = std::vector<std::vector<double>>;

RandomStream stream(uint64_t seed = 0) {
  return RandomStream({seed, "kmeans-test"});
}

Points scattered(size_t count, size_t dimensions, uint64_t seed) {
  RandomStream random = stream(seed);
  Points points(count, std::vector<double>(dimensions));
  for (std::vector<double>& point : points) {
    for (double& value : point) value = random.uniform();
  }
  return points;
}

TEST(KmeansTest, SquaredDistanceByHand) {
  EXPECT_EQ(squared_distance({1, 2, 3}, {4, 6, 3}), 9 + 16);
  EXPECT_EQ(squared_distance({}, {}), 0);
}

TEST(KmeansTest, TwoGroupsByHand) {
  const Points points = {{0, 0}, {10, 10}, {0, 2}, {10, 12}, {2, 0}};
  const Clustering found = kmeans(points, 2, 10, stream());
  EXPECT_EQ(found.cluster[0], found.cluster[2]);
  EXPECT_EQ(found.cluster[0], found.cluster[4]);
  EXPECT_EQ(found.cluster[1], found.cluster[3]);
  EXPECT_NE(found.cluster[0], found.cluster[1]);
  EXPECT_DOUBLE_EQ(found.centroids[found.cluster[0]][0], 2.0 / 3);
  EXPECT_DOUBLE_EQ(found.centroids[found.cluster[0]][1], 2.0 / 3);
  EXPECT_THAT(found.centroids[found.cluster[1]], testing::ElementsAre(10, 11));
  // 4/9 + 4/9, then twice 4/9 + 16/9, and 1 + 1.
  EXPECT_NEAR(found.inertia, 8.0 / 9 + 40.0 / 9 + 2, 1e-12);
}

TEST(KmeansTest, OneClusterIsTheMean) {
  const Clustering found = kmeans({{1}, {2}, {6}}, 1, 10, stream());
  EXPECT_THAT(found.cluster, Each(0u));
  EXPECT_EQ(found.centroids, (Points{{3}}));
  EXPECT_EQ(found.inertia, 4 + 1 + 9);
}

TEST(KmeansTest, AsManyClustersAsPointsAtMost) {
  for (const size_t clusters : {3u, 4u, 30u}) {
    const Clustering found = kmeans({{1}, {5}, {9}}, clusters, 10, stream());
    EXPECT_THAT(found.centroids,
                UnorderedElementsAre(Points::value_type{1}, Points::value_type{5}, Points::value_type{9}));
    EXPECT_EQ(std::set<size_t>(found.cluster.begin(), found.cluster.end()).size(), 3u);
    EXPECT_EQ(found.inertia, 0);
  }
}

TEST(KmeansTest, IdenticalPoints) {
  const Clustering found = kmeans(Points(5, {3, 4}), 3, 10, stream());
  ASSERT_EQ(found.cluster.size(), 5u);
  EXPECT_THAT(found.cluster, Each(found.cluster[0]));
  EXPECT_THAT(found.centroids, Each(std::vector<double>{3, 4}));
  EXPECT_EQ(found.inertia, 0);
}

TEST(KmeansTest, NoPoints) {
  const Clustering found = kmeans({}, 3, 10, stream());
  EXPECT_TRUE(found.cluster.empty());
  EXPECT_TRUE(found.centroids.empty());
}

// The definition: every point looks at every centroid, every time.
Clustering plain_lloyd(const Points& points, size_t clusters, RandomStream random) {
  Clustering result;
  result.cluster.assign(points.size(), clusters);
  result.centroids = {points[random.below(static_cast<uint32_t>(points.size()))]};
  const auto nearest = [&](const std::vector<double>& point) {
    size_t best = 0;
    for (size_t c = 1; c < result.centroids.size(); ++c) {
      if (squared_distance(point, result.centroids[c]) < squared_distance(point, result.centroids[best]))
        best = c;
    }
    return best;
  };
  const auto distance = [&](const std::vector<double>& point) {
    return squared_distance(point, result.centroids[nearest(point)]);
  };
  while (result.centroids.size() < clusters) {
    double total = 0;
    for (const auto& point : points) total += distance(point);
    double left = random.uniform() * total;
    size_t chosen = 0;
    while (chosen + 1 < points.size() && left >= distance(points[chosen])) left -= distance(points[chosen++]);
    result.centroids.push_back(points[chosen]);
  }
  for (bool moved = true; moved;) {
    moved = false;
    Points sums(clusters, std::vector<double>(points[0].size()));
    std::vector<double> counts(clusters);
    for (size_t i = 0; i < points.size(); ++i) {
      const size_t own = nearest(points[i]);
      moved |= own != result.cluster[i];
      result.cluster[i] = own;
      ++counts[own];
      for (size_t d = 0; d < sums[own].size(); ++d) sums[own][d] += points[i][d];
    }
    for (size_t c = 0; c < clusters; ++c) {
      if (counts[c] == 0) continue;
      for (double& value : sums[c]) value /= counts[c];
      result.centroids[c] = sums[c];
    }
  }
  return result;
}

TEST(KmeansTest, IsLloydsAlgorithm) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Points points = scattered(70 + seed, 1 + seed % 12, seed);
    if (seed % 2 == 0) {  // whole numbers, many of them equally far apart
      for (auto& point : points) {
        for (double& value : point) value = std::floor(value * 4);
      }
    }
    const size_t clusters = 2 + seed % 9;
    const Clustering found = kmeans(points, clusters, 1, stream(seed));
    const Clustering expected = plain_lloyd(points, clusters, stream(seed).substream(0));
    EXPECT_EQ(found.cluster, expected.cluster) << "seed " << seed;
    EXPECT_EQ(found.centroids, expected.centroids) << "seed " << seed;
  }
}

TEST(KmeansTest, SameStreamSameResult) {
  const Points points = scattered(60, 3, 1);
  const Clustering one = kmeans(points, 7, 10, stream(5));
  const Clustering two = kmeans(points, 7, 10, stream(5));
  EXPECT_EQ(one.cluster, two.cluster);
  EXPECT_EQ(one.centroids, two.centroids);
  EXPECT_EQ(one.inertia, two.inertia);
}

// The result is a fixed point of Lloyd's two steps, its inertia is what it says, and further restarts
// never make it worse; over all seeds they do make it better.
TEST(KmeansTest, BestOfItsRestarts) {
  bool better = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Points points = scattered(50, 2, seed);
    const Clustering once = kmeans(points, 6, 1, stream(seed));
    const Clustering often = kmeans(points, 6, 10, stream(seed));
    EXPECT_LE(often.inertia, once.inertia);
    better |= often.inertia < once.inertia;
    double inertia = 0;
    for (size_t i = 0; i < points.size(); ++i) {
      const double own = squared_distance(points[i], often.centroids[often.cluster[i]]);
      for (const std::vector<double>& centroid : often.centroids) {
        EXPECT_LE(own, squared_distance(points[i], centroid));
      }
      inertia += own;
    }
    EXPECT_DOUBLE_EQ(inertia, often.inertia);
  }
  EXPECT_TRUE(better);
}

// Of many points a sample decides the centroids, and every point goes to the nearest: here three clouds far
// apart, found as they are.
TEST(KmeansTest, ManyPoints) {
  Points points = scattered(20000, 2, 1);
  for (size_t i = 0; i < points.size(); ++i) points[i][0] += 10.0 * static_cast<double>(i % 3);
  const Clustering found = kmeans(points, 3, 10, stream());
  ASSERT_EQ(found.cluster.size(), points.size());
  double inertia = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    ASSERT_EQ(found.cluster[i], found.cluster[i % 3]);
    inertia += squared_distance(points[i], found.centroids[found.cluster[i]]);
  }
  EXPECT_DOUBLE_EQ(inertia, found.inertia);
  EXPECT_EQ(kmeans(points, 3, 10, stream()).cluster, found.cluster);
}

}  // namespace
}  // namespace bitfed
