#pragma once

#include <cstdint>
#include <vector>

namespace bitfed {

// One release of a private sum: every client takes part with probability `sampling`, independently of the
// others, and Gaussian noise of `noise_multiplier` times what one client can change is added.
struct SampledGaussian {
  double noise_multiplier = 0;  // above 0
  double sampling = 1;          // above 0, at most 1
};

// What a release costs, as Rényi differential privacy (Mironov, Talwar, Zhang, "Rényi differential
// privacy of the sampled Gaussian mechanism", 2019), for databases that differ in one client more or less.
// At integer orders the formula holds for discrete Gaussian noise on integers to the letter: moments at whole
// multiples of a whole shift are those of the Gaussian, and the reflection that maps one distribution to the
// other keeps the integers. Between them it does up to a factor of 1 + e^-300 if the noise has a standard
// deviation of at least kMinSigma integers.
class ReleaseCost {
 public:
  // The noise's standard deviation in integers, at least.
  static constexpr double kMinSigma = 4;

  explicit ReleaseCost(const SampledGaussian& release);

  // The smallest epsilon for which so many releases are (epsilon, delta)-differentially private by the
  // conversion of Canonne, Kamath and Steinke, 2020, proposition 12. 0 where nothing was released.
  double epsilon(uint64_t times, double delta) const;

 private:
  std::vector<double> divergences_;  // of each order
};

// What `times` releases cost.
double epsilon_of(const SampledGaussian& release, uint64_t times, double delta);

// How many releases cost at most `epsilon`; `most` if all of these do.
uint64_t releases_within(double epsilon, double delta, const SampledGaussian& release, uint64_t most);

// The smallest noise multiplier, a multiple of 0.001, with which `times` releases cost at most `epsilon`.
// It is coarse so that no mathematical library can change it. An input_error where none up to 10,000 does.
double noise_for(double epsilon, double delta, double sampling, uint64_t times);

}  // namespace bitfed
