#include "bitfed/data/catalog/synthetic_health.h"

#include <array>
#include <span>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/random.h"

namespace bitfed {
namespace {

constexpr size_t kAttributes = 14;
constexpr size_t kClasses = 6;
constexpr size_t kFactors = 3;
constexpr size_t kMaxRows = 50'000'000;  // for training: 3.6 GB with the test rows

constexpr uint32_t kShortestBout = 30;  // points
constexpr uint32_t kLongestBout = 150;

constexpr float kLoading = 0.35F;
constexpr float kPersistence = 0.95F;        // autoregressive coefficient of the slow factors
constexpr float kInnovation = 0.312249899F;  // sqrt(1 - 0.95^2): keeps their variance at one
constexpr float kNoise = 0.7F;
constexpr float kOffset = 0.6F;  // standard deviations over people
constexpr float kGain = 0.2F;

using Attributes = std::array<float, kAttributes>;

struct Attribute {
  const char* name;
  float centre;
  float scale;
};

// Units: accelerations in g, levels of movement in dB, rates per minute, degrees Celsius, pascals per second.
constexpr std::array<Attribute, kAttributes> kSensors = {{
    {"acc_x_mean", 0.4F, 0.5F},
    {"acc_y_mean", 0.0F, 0.5F},
    {"acc_z_mean", 0.2F, 0.5F},
    {"acc_x_level", -15.0F, 8.0F},
    {"acc_y_level", -16.0F, 8.0F},
    {"acc_z_level", -16.0F, 8.0F},
    {"gyro_x_level", 25.0F, 8.0F},
    {"gyro_y_level", 24.0F, 8.0F},
    {"gyro_z_level", 24.0F, 8.0F},
    {"cadence_level", -20.0F, 9.0F},
    {"heart_rate", 95.0F, 18.0F},
    {"breathing_rate", 18.0F, 3.5F},
    {"skin_temperature", 33.0F, 0.8F},
    {"pressure_slope", 0.0F, 3.0F},
}};

struct Activity {
  const char* name;
  Attributes mean;  // in units of the attributes' scales
};

constexpr std::array<Activity, kClasses> kActivities = {{
    {"lying", {-1.6F, 0.9F, 1.2F, -1.0F, -1.0F, -1.0F, -1.0F, -1.0F, -1.0F, -1.0F, -1.1F, -0.9F, 0.6F, 0.0F}},
    {"sitting",
     {0.0F, 0.5F, 0.8F, -0.9F, -0.9F, -0.9F, -0.9F, -0.8F, -0.9F, -1.0F, -0.8F, -0.7F, 0.3F, 0.0F}},
    {"standing",
     {0.7F, -0.1F, 0.1F, -0.7F, -0.7F, -0.7F, -0.6F, -0.6F, -0.6F, -0.9F, -0.4F, -0.5F, 0.1F, 0.0F}},
    {"walking", {0.6F, -0.3F, -0.1F, 0.5F, 0.3F, 0.4F, 0.5F, 0.3F, 0.6F, 0.9F, 0.2F, 0.2F, -0.1F, 0.0F}},
    {"stairs", {0.4F, -0.4F, -0.3F, 0.6F, 0.7F, 0.5F, 0.8F, 0.7F, 0.5F, 0.6F, 0.9F, 0.9F, -0.2F, 1.0F}},
    {"running", {0.6F, -0.3F, -0.3F, 1.5F, 1.4F, 1.4F, 1.3F, 1.4F, 1.3F, 1.5F, 1.4F, 1.3F, -0.6F, 0.1F}},
}};

// Nearly normal, mean 0 and variance 1, at most 3.5: the sum of four bytes of one draw.
float bell(RandomStream& random) {
  const uint32_t bits = random.next_u32();
  const uint32_t pairs = (bits & 0x00ff00ffu) + (bits >> 8 & 0x00ff00ffu);
  const auto sum = static_cast<int32_t>((pairs & 0xffffu) + (pairs >> 16));
  return static_cast<float>(sum - 510) * 0.00676586F;  // 1 / sqrt(4 (256^2 - 1) / 12)
}

// class -> factor -> attribute
using Loadings = std::array<std::array<Attributes, kFactors>, kClasses>;

// Seed 0: activities look the same whatever the recipe's seed.
Loadings make_loadings() {
  RandomStream random({0, "synthetic-health loadings"});
  Loadings loadings{};
  for (auto& factors : loadings) {
    for (Attributes& factor : factors) {
      for (float& loading : factor) loading = kLoading * bell(random);
    }
  }
  return loadings;
}

struct Person {
  std::array<double, kClasses> shares{};  // of the activities, with sum 1
  Attributes gain{};
  Attributes offset{};
};

Person make_person(double skew, RandomStream random) {
  Person person;
  double sum = 0;
  for (double& share : person.shares) sum += share = random.gamma(skew);
  for (double& share : person.shares) share /= sum;
  for (float& gain : person.gain) gain = 1 + kGain * bell(random);
  for (float& offset : person.offset) offset = kOffset * bell(random);
  return person;
}

// The readings of a person's device, one point at a time.
class Recording {
 public:
  Recording(const Loadings& loadings, const Person& person, RandomStream random)
      : loadings_(loadings), person_(person), random_(random) {
    for (float& factor : factors_) factor = bell(random_);
  }

  // Writes the attributes of the next point; returns its activity.
  uint16_t next(std::span<float, kAttributes> row) {
    if (left_ == 0) begin_bout();
    --left_;
    for (float& factor : factors_) factor = kPersistence * factor + kInnovation * bell(random_);
    const auto& loading = loadings_[activity_];
    const Attributes& mean = kActivities[activity_].mean;
    for (size_t j = 0; j < kAttributes; ++j) {
      float level = mean[j];
      for (size_t k = 0; k < kFactors; ++k) level += loading[k][j] * factors_[k];
      level = person_.gain[j] * level + person_.offset[j] + kNoise * bell(random_);
      row[j] = kSensors[j].centre + kSensors[j].scale * level;
    }
    return activity_;
  }

 private:
  void begin_bout() {
    left_ = kShortestBout + random_.below(kLongestBout - kShortestBout + 1);
    const double drawn = random_.uniform();
    double cumulated = 0;
    for (uint16_t activity = 0; activity < kClasses; ++activity) {
      cumulated += person_.shares[activity];
      if (person_.shares[activity] > 0)
        activity_ = activity;  // the last activity, should rounding leave a gap
      if (drawn < cumulated) return;
    }
  }

  const Loadings& loadings_;
  const Person& person_;
  RandomStream random_;
  std::array<float, kFactors> factors_{};
  uint16_t activity_ = 0;
  uint32_t left_ = 0;  // points remaining in the current bout
};

Dataset empty_table(uint32_t devices, size_t rows) {
  Dataset table;
  table.name = "synthetic-health";
  for (const Attribute& sensor : kSensors) table.columns.emplace_back(sensor.name);
  for (const Activity& activity : kActivities) table.class_names.emplace_back(activity.name);
  for (uint32_t device = 1; device <= devices; ++device) {
    table.group_names.push_back(fmt::format("device {}", device));
  }
  table.values.resize(rows * kAttributes);
  table.labels.resize(rows);
  table.groups.resize(rows);
  return table;
}

// Test points follow the training points of the same recording in time.
void record(Recording& recording, uint32_t device, size_t points, Dataset* table) {
  for (size_t row = device * points; row < (device + size_t{1}) * points; ++row) {
    table->labels[row] = recording.next(
        std::span<float, kAttributes>(table->values.own().data() + row * kAttributes, kAttributes));
    table->groups[row] = device;
  }
}

}  // namespace

SyntheticHealthOptions read_synthetic_health(const Config& data) {
  SyntheticHealthOptions options;
  options.devices = static_cast<uint32_t>(data.integer("devices", options.devices, 2, 100'000));
  options.points = static_cast<uint32_t>(data.integer("points", options.points, 10, 10'000'000));
  options.skew = data.number("skew", options.skew, 0.05, 1000);
  if (const size_t rows = size_t{options.devices} * options.points; rows > kMaxRows) {
    throw input_error("{}: found {} points of {} devices, {} in total, expected at most {}",
                      data.where("points"), options.points, options.devices, rows, kMaxRows);
  }
  return options;
}

DataSplit make_synthetic_health(const SyntheticHealthOptions& options, uint64_t seed) {
  const Loadings loadings = make_loadings();
  const size_t test_points = options.points * size_t{3} / 10;
  DataSplit split{empty_table(options.devices, options.devices * size_t{options.points}),
                  empty_table(options.devices, options.devices * test_points),
                  {}};
  for (uint32_t device = 0; device < options.devices; ++device) {
    const Person person =
        make_person(options.skew, RandomStream({seed, "synthetic-health person", 0, device}));
    Recording recording(loadings, person, RandomStream({seed, "synthetic-health recording", 0, device}));
    record(recording, device, options.points, &split.train);
    record(recording, device, test_points, &split.test);
  }
  return split;
}

}  // namespace bitfed
