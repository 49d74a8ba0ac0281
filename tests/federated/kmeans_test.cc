#include "bitfed/federated/methods/kmeans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace bitfed
