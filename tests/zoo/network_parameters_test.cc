#include "bitfed/zoo/network/network_parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

using Limits = std::numeric_limits<float>;

bool is_fine(const std::string& name, const std::vector<float>& values) {
  try {
    check_values(name, values, "file");
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("file: tensor '" + name + "': expected finite numbers"),
              std::string::npos);
    return false;
  }
  return true;
}

TEST(NetworkParameters, OneValueThatIsNotFiniteIsFoundWhereverItStands) {
  for (const size_t count : {1, 2, 3, 8, 9}) {
    std::vector<float> values(count, -Limits::max());
    EXPECT_TRUE(is_fine("weights", values));
    for (float& value : values) {
      for (const float bad : {Limits::infinity(), -Limits::infinity(), std::nanf(""), -std::nanf("7")}) {
        value = bad;
        EXPECT_FALSE(is_fine("weights", values));
      }
      value = Limits::denorm_min();
    }
    EXPECT_TRUE(is_fine("weights", values));
  }
  EXPECT_TRUE(is_fine("weights", {}));
}

TEST(NetworkParameters, VariancesAreNotNegative) {
  EXPECT_TRUE(is_fine("norm.variance", {0, -0.0f, Limits::max()}));
  EXPECT_FALSE(is_fine("norm.variance", {1, -Limits::denorm_min(), 1}));
  EXPECT_FALSE(is_fine("norm.variance", {1, std::nanf(""), 1}));
}

}  // namespace
}  // namespace bitfed
