#include "bitfed/data/pixel_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two images of two pixels of two channels.
Dataset images() {
  Dataset data;
  data.height = 1;
  data.width = data.channels = 2;
  data.pixels = {0, 255, 255, 255, 0, 255, 0, 255};
  data.labels = {0, 0};
  data.class_names = {"a"};
  return data;
}

TEST(PixelStatistics, OfEachChannel) {
  const PixelStatistics statistics = measure_pixels(images());
  EXPECT_THAT(statistics.mean, ElementsAre(0.25, 1));
  EXPECT_THAT(statistics.standard_deviation, ElementsAre(std::sqrt(3.0) / 4, 0));
}

std::string refusal(const std::string& recipe) {
  Dataset data = images();
  return error_text([&] { read_pixel_statistics(Config::parse(recipe, "r.toml"), &data); });
}

TEST(PixelStatistics, OfTheRecipe) {
  Dataset data = images();
  read_pixel_statistics(Config::parse("", "r.toml"), &data);
  EXPECT_THAT(data.pixel_mean, IsEmpty());
  read_pixel_statistics(Config::parse("pixel_mean = [0, 0.5]\npixel_std = [0.25, 1]", "r.toml"), &data);
  EXPECT_THAT(data.pixel_mean, ElementsAre(0.0f, 0.5f));
  EXPECT_THAT(data.pixel_std, ElementsAre(0.25f, 1.0f));
  EXPECT_EQ(subset(data, {}).pixel_mean, data.pixel_mean);
  EXPECT_EQ(subset(data, {}).pixel_std, data.pixel_std);
}

TEST(PixelStatistics, RecipesThatMakeNoSense) {
  EXPECT_EQ(refusal("pixel_std = [1, 1]"),
            "r.toml: pixel_mean: missing, expected pixel_mean and pixel_std together");
  EXPECT_EQ(refusal("pixel_mean = [0.5]\npixel_std = [1, 1]"),
            "r.toml: line 1: pixel_mean: found 1 values, expected one per channel, 2");
  EXPECT_THAT(refusal("pixel_mean = [0.5, nan]\npixel_std = [1, 1]"), HasSubstr("pixel_mean: found nan"));
  EXPECT_THAT(refusal("pixel_mean = [0.5, 33.3]\npixel_std = [1, 1]"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refusal("pixel_mean = [0.5, 0.5]\npixel_std = [1, 0]"), HasSubstr("pixel_std: found 0"));
}

}  // namespace
}  // namespace bitfed
