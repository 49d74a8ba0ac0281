#include "bitfed/nn/layers/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/convolution/convolution.h"
#include "bitfed/nn/layers/average_pool.h"
#include "bitfed/nn/layers/biased_activation.h"
#include "bitfed/nn/layers/dense.h"
#include "bitfed/nn/layers/dropout.h"
#include "bitfed/nn/layers/max_pool.h"
#include "bitfed/nn/norm/pooled_norm.h"

namespace bitfed {
namespace {

struct Case {
  size_t batch, height, width, channels, first, second, classes;
};

// [conv, norm, ReLU, pool] twice, then dense.
Network make_network(const Case& c) {
  const ImageShape input{c.height, c.width, c.channels, 1};
  Network network(c.batch, input, c.classes);
  ImageShape shape = input;
  for (const bool first : {true, false}) {
    const std::string name = first ? "a" : "b";
    const size_t channels = first ? c.first : c.second;
    network.add(std::make_unique<Convolution>(c.batch, shape, channels, name));
    shape = {shape.height, shape.width, channels, 0};
    network.add(std::make_unique<PooledNorm>(c.batch, shape, Activation::kRelu, first ? 1 : 0, name));
    shape = {shape.height / 2, shape.width / 2, channels, first ? size_t{1} : size_t{0}};
  }
  network.add(std::make_unique<Dense>(c.batch, shape, c.classes, "c"));
  network.initialise(RandomStream({11, "network"}));
  return network;
}

std::vector<uint16_t> fill(Network* network, const Case& c, size_t images) {
  RandomStream random({12, "images"});
  std::vector<uint16_t> labels;
  for (size_t i = 0; i < images; ++i) {
    for (size_t y = 0; y < c.height; ++y) {
      for (size_t k = 0; k < c.width * c.channels; ++k)
        network->input().row(i, y)[k] = static_cast<float>(random.normal());
    }
    labels.push_back(static_cast<uint16_t>(random.below(static_cast<uint32_t>(c.classes))));
  }
  return labels;
}

using Values = std::vector<double>;

// With the padding of its rows.
Values to_double(const Floats& floats) {
  return {floats.data(), floats.data() + floats.size()};
}

// The same network by plain loops in double precision: the mean loss. `parameters` as the network has them.
double plain_loss(const Case& c, const std::vector<Values>& parameters, Network& network, size_t images,
                  const std::vector<uint16_t>& labels) {
  size_t height = c.height;
  size_t width = c.width;
  size_t in = c.channels;
  std::vector<Values> x(images);
  for (size_t i = 0; i < images; ++i) {
    for (size_t y = 0; y < height; ++y)
      x[i].insert(x[i].end(), network.input().row(i, y), network.input().row(i, y) + width * in);
  }
  for (size_t block = 0; block < 2; ++block) {
    const size_t out = block == 0 ? c.first : c.second;
    const Values& weights = parameters[5 * block];
    std::vector<Values> y(images, Values(height * width * out));
    for (size_t i = 0; i < images; ++i) {
      for (size_t row = 0; row < height; ++row) {
        for (size_t column = 0; column < width; ++column) {
          for (size_t tap = 0; tap < 9; ++tap) {
            const size_t from_row = row + tap / 3 - 1;  // wraps around where it is outside
            const size_t from_column = column + tap % 3 - 1;
            if (from_row >= height || from_column >= width) continue;
            for (size_t a = 0; a < in; ++a) {
              for (size_t o = 0; o < out; ++o) {
                y[i][(row * width + column) * out + o] +=
                    x[i][(from_row * width + from_column) * in + a] * weights[(tap * in + a) * out + o];
              }
            }
          }
        }
      }
    }
    const double count = static_cast<double>(images * height * width);
    for (size_t o = 0; o < out; ++o) {
      double mean = 0;
      double variance = 0;
      for (const Values& image : y) {
        for (size_t k = o; k < image.size(); k += out) mean += image[k] / count;
      }
      for (const Values& image : y) {
        for (size_t k = o; k < image.size(); k += out)
          variance += (image[k] - mean) * (image[k] - mean) / count;
      }
      for (Values& image : y) {
        for (size_t k = o; k < image.size(); k += out) {
          const double normal = (image[k] - mean) / std::sqrt(variance + 1e-5);
          image[k] = std::max(0.0, normal * parameters[5 * block + 1][o] + parameters[5 * block + 2][o]);
        }
      }
    }
    for (size_t i = 0; i < images; ++i) {
      x[i].assign(height / 2 * (width / 2) * out, 0);
      for (size_t row = 0; row < height / 2; ++row) {
        for (size_t column = 0; column < width / 2; ++column) {
          for (size_t o = 0; o < out; ++o) {
            double most = -1e300;
            for (size_t k = 0; k < 4; ++k) {
              const size_t pixel = (2 * row + k / 2) * width + 2 * column + k % 2;
              most = std::max(most, y[i][pixel * out + o]);
            }
            x[i][(row * (width / 2) + column) * out + o] = most;
          }
        }
      }
    }
    height /= 2;
    width /= 2;
    in = out;
  }
  double loss = 0;
  for (size_t i = 0; i < images; ++i) {
    Values logits(c.classes);
    for (size_t k = 0; k < x[i].size(); ++k) {
      for (size_t o = 0; o < c.classes; ++o) logits[o] += x[i][k] * parameters[10][k * padded(c.classes) + o];
    }
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    loss += (std::log(sum) - logits[labels[i]]) / static_cast<double>(images);
  }
  return loss;
}

const Case kCases[] = {{4, 6, 6, 1, 16, 16, 3}, {3, 7, 5, 3, 16, 32, 10}, {1, 8, 8, 2, 32, 16, 2}};

TEST(NetworkTest, GradientsAgreeWithCentralDifferences) {
  for (const Case& c : kCases) {
    Network network = make_network(c);
    const std::vector<uint16_t> labels = fill(&network, c, c.batch);
    std::vector<Values> values;
    for (const Parameter* parameter : network.parameters())
      values.push_back(to_double(parameter->values.values));
    const float loss = network.differentiate(labels);
    EXPECT_NEAR(loss, plain_loss(c, values, network, c.batch, labels), 1e-4);
    RandomStream random({13, "which"});
    for (size_t p = 0; p < values.size(); ++p) {
      const Parameter& parameter = *network.parameters()[p];
      if (parameter.statistic) continue;
      for (int trial = 0; trial < 12; ++trial) {
        const size_t i = random.below(static_cast<uint32_t>(parameter.values.values.size()));
        if (p == 10 && i % padded(c.classes) >= c.classes) continue;
        const double step = 1e-6;
        const auto at = [&](double change) {
          std::vector<Values> moved = values;
          moved[p][i] += change;
          return plain_loss(c, moved, network, c.batch, labels);
        };
        const double expected = (at(step) - at(-step)) / (2 * step);
        EXPECT_NEAR(parameter.gradient.values[i], expected, 1e-3 * std::max(0.05, std::fabs(expected)))
            << parameter.name << " " << i;
      }
    }
  }
}

TEST(NetworkTest, SameBitsOnEveryInstructionSet) {
  const std::string before = kernels().name;
  for (const Case& c : kCases) {
    std::vector<std::vector<float>> results;
    for (const Kernels* table : supported_kernels()) {
      force_kernels(table->name);
      Network network = make_network(c);
      const std::vector<uint16_t> labels = fill(&network, c, c.batch);
      for (int step = 0; step < 3; ++step) {
        network.differentiate(labels);
        network.descend({.rate = 0.1f});
      }
      network.predict(c.batch);
      std::vector<float>& result = results.emplace_back(network.logits(0), network.logits(0) + c.classes);
      for (const Parameter* parameter : network.parameters()) {
        const std::vector<float> numbers = parameter->to_vector();
        result.insert(result.end(), numbers.begin(), numbers.end());
      }
    }
    for (const auto& result : results) EXPECT_EQ(result, results.front());
  }
  force_kernels(before);
}

// Without batch norm: convolutions of other kernels, biases, pools, dropout and hidden dense layers.
Network make_plain_network(const Case& c, double dropout) {
  const ImageShape input{c.height, c.width, c.channels, 2};
  Network network(c.batch, input, c.classes);
  ImageShape shape = input;
  const auto add = [&](auto layer) {
    shape = layer->output().shape();
    network.add(std::move(layer));
  };
  add(std::make_unique<Convolution>(c.batch, shape, c.first, "a", ConvolutionKernel{5, 1}));
  add(std::make_unique<BiasedActivation>(c.batch, shape, Activation::kRelu, "a", 25 * c.channels));
  add(std::make_unique<MaxPool>(c.batch, shape, 2));
  add(std::make_unique<Dropout>(c.batch, shape, dropout));
  add(std::make_unique<Convolution>(c.batch, shape, 10, "b", ConvolutionKernel{1, 1, true}));
  add(std::make_unique<BiasedActivation>(c.batch, shape, Activation::kHardtanh, "b", c.first, 1));
  add(std::make_unique<Convolution>(c.batch, shape, c.second, "c", ConvolutionKernel{3, 2}));
  add(std::make_unique<AveragePool>(c.batch, shape, shape.height / 2));
  add(std::make_unique<Dense>(c.batch, shape, 21, "d", Bias::kLearned));
  add(std::make_unique<ActivationLayer>(c.batch, shape, Activation::kRelu));
  add(std::make_unique<Dropout>(c.batch, shape, dropout));
  add(std::make_unique<Dense>(c.batch, shape, c.classes, "e", Bias::kLearned));
  network.initialise(RandomStream({14, "network"}));
  return network;
}

TEST(NetworkTest, WithoutBatchNormTheSameBitsOnEveryInstructionSet) {
  const std::string before = kernels().name;
  const Case c{4, 9, 8, 3, 16, 32, 5};
  std::vector<std::vector<std::vector<float>>> results;
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    Network network = make_plain_network(c, 0.3);
    network.seed(RandomStream({15, "seed"}));
    const std::vector<uint16_t> labels = fill(&network, c, c.batch);
    for (int step = 0; step < 3; ++step) {
      network.differentiate(labels);
      network.descend({.rate = 0.1f});
    }
    auto& result = results.emplace_back();
    for (const Parameter* parameter : network.parameters()) result.push_back(parameter->to_vector());
  }
  for (const auto& result : results) EXPECT_EQ(result, results.front());
  Network other = make_plain_network(c, 0.3);
  other.seed(RandomStream({16, "seed"}));
  const std::vector<uint16_t> labels = fill(&other, c, c.batch);
  other.differentiate(labels);
  other.descend({.rate = 0.1f});
  EXPECT_NE(other.parameters()[0]->to_vector(), results.front()[0]);
  force_kernels(before);
}

void expect_learns_by_heart(const Case& c, Network network) {
  const std::vector<uint16_t> labels = fill(&network, c, c.batch);
  float loss = 0;
  for (int step = 0; step < 200; ++step) {
    loss = network.differentiate(labels);
    network.descend({.rate = 0.1f});
  }
  EXPECT_LT(loss, 0.05);
  network.predict(c.batch);  // by the running statistics, which have come close to the batch's
  for (size_t i = 0; i < c.batch; ++i) {
    const float* logits = network.logits(i);
    EXPECT_EQ(std::max_element(logits, logits + c.classes) - logits, labels[i]);
  }
}

TEST(NetworkTest, LearnsABatchByHeart) {
  expect_learns_by_heart(kCases[0], make_network(kCases[0]));
  const Case c{4, 9, 8, 3, 16, 32, 5};
  expect_learns_by_heart(c, make_plain_network(c, 0));
}

// Three steps by hand from the gradients: decay where weights are a convolution's, momentum wherever
// something is learned, and no velocity after stop(). Without both, the descent is plain.
TEST(NetworkTest, MomentumAndDecay) {
  const Case c{4, 9, 8, 3, 16, 32, 5};
  const Descent descent{.rate = 0.1f, .momentum = 0.9f, .decay = 0.01f};
  Network network = make_plain_network(c, 0);
  const std::vector<uint16_t> labels = fill(&network, c, c.batch);
  const size_t count = network.parameters().size();
  std::vector<std::vector<float>> velocities(count);
  size_t decaying = 0;
  for (int step = 0; step < 4; ++step) {
    if (step == 3) {
      network.stop();
      velocities.assign(count, {});
    }
    network.differentiate(labels);
    std::vector<std::vector<float>> expected;
    for (size_t p = 0; p < count; ++p) {
      const Parameter& parameter = *network.parameters()[p];
      auto& values = expected.emplace_back(parameter.to_vector());
      std::vector<float> gradient;
      parameter.copy_gradient(&gradient);
      velocities[p].resize(values.size());
      EXPECT_EQ(parameter.decays, parameter.name == "a.weights" || parameter.name == "b.weights" ||
                                      parameter.name == "c.weights")
          << parameter.name;
      decaying += parameter.decays ? 1 : 0;
      for (size_t i = 0; i < values.size(); ++i) {
        const float u = parameter.decays ? std::fma(descent.decay, values[i], gradient[i]) : gradient[i];
        velocities[p][i] = std::fma(descent.momentum, velocities[p][i], u);
        values[i] = std::fma(-descent.rate, velocities[p][i], values[i]);
      }
    }
    network.descend(descent);
    for (size_t p = 0; p < count; ++p) EXPECT_EQ(network.parameters()[p]->to_vector(), expected[p]) << step;
  }
  EXPECT_GT(decaying, 0u);
}

// Three steps of Adam by its formulas in double precision; after stop() the first one again.
TEST(NetworkTest, Adam) {
  const Case c{4, 9, 8, 3, 16, 32, 5};
  Network network = make_plain_network(c, 0);
  const std::vector<uint16_t> labels = fill(&network, c, c.batch);
  const size_t count = network.parameters().size();
  std::vector<Values> first(count), second(count);
  int number = 0;
  for (int step = 0; step < 4; ++step) {
    if (step == 3) {
      network.stop();
      first.assign(count, {});
      second.assign(count, {});
      number = 0;
    }
    ++number;
    network.differentiate(labels);
    std::vector<Values> expected;
    double moved = 0;
    for (size_t p = 0; p < count; ++p) {
      const Parameter& parameter = *network.parameters()[p];
      const std::vector<float> before = parameter.to_vector();
      Values& values = expected.emplace_back(before.begin(), before.end());
      if (parameter.statistic) continue;
      std::vector<float> gradient;
      parameter.copy_gradient(&gradient);
      first[p].resize(values.size());
      second[p].resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const double g = gradient[i];
        first[p][i] = 0.9 * first[p][i] + 0.1 * g;
        second[p][i] = 0.999 * second[p][i] + 0.001 * g * g;
        const double correction = std::sqrt(1 - std::pow(0.999, number)) / (1 - std::pow(0.9, number));
        const double change = 0.01 * correction * first[p][i] / (std::sqrt(second[p][i]) + 1e-7);
        values[i] -= change;
        moved = std::max(moved, std::abs(change));
      }
    }
    network.descend({.rate = 0.01f, .adam = true});
    EXPECT_NEAR(moved, 0.01, 0.002);  // Adam moves by about its rate
    for (size_t p = 0; p < count; ++p) {
      const std::vector<float> found = network.parameters()[p]->to_vector();
      for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[p][i], 2e-5) << step;
    }
  }
}

// What is added to a gradient is part of the next step; padding stays out of it.
TEST(NetworkTest, AddedToTheGradient) {
  const Case c{4, 9, 8, 3, 16, 32, 5};
  Network network = make_plain_network(c, 0);
  const std::vector<uint16_t> labels = fill(&network, c, c.batch);
  network.differentiate(labels);
  for (Parameter* parameter : network.parameters()) {
    if (parameter->statistic) continue;
    std::vector<float> before, after, more(parameter->count());
    for (size_t i = 0; i < more.size(); ++i) more[i] = static_cast<float>(i % 7) - 3;
    parameter->copy_gradient(&before);
    const Values padded = to_double(parameter->gradient.values);
    parameter->add_to_gradient(more);
    parameter->copy_gradient(&after);
    for (size_t i = 0; i < more.size(); ++i) ASSERT_EQ(after[i], before[i] + more[i]) << parameter->name;
    size_t changed = 0;
    for (size_t i = 0; i < padded.size(); ++i)
      changed += padded[i] != static_cast<double>(parameter->gradient.values[i]) ? 1 : 0;
    EXPECT_LE(changed, parameter->count()) << parameter->name;
  }
}

// A part of a batch is as good as a batch of that size.
TEST(NetworkTest, PartOfABatch) {
  Case c = kCases[1];
  Network small = make_network(c);
  const std::vector<uint16_t> labels = fill(&small, c, 3);
  const float expected = small.differentiate(labels);
  c.batch = 8;
  Network large = make_network(c);
  fill(&large, c, 3);
  EXPECT_EQ(large.differentiate(labels), expected);
  for (size_t p = 0; p < small.parameters().size(); ++p) {
    const Parameter& a = *small.parameters()[p];
    const Parameter& b = *large.parameters()[p];
    for (size_t i = 0; !a.statistic && i < a.count(); ++i)
      ASSERT_EQ(a.gradient.values[i], b.gradient.values[i]) << a.name;
  }
}

// A plain descent that was announced is taken in the backward pass where that can be; others come later.
TEST(NetworkTest, AnnouncedDescentsHaveTheSameBits) {
  const Case c{5, 8, 8, 3, 16, 32, 21};
  for (const Descent& descent : {Descent{.rate = 0.1f}, Descent{.rate = 0.1f, .momentum = 0.9f},
                                 Descent{.rate = 0.1f, .adam = true}}) {
    Network plain = make_network(c);
    Network announced = make_network(c);
    fill(&plain, c, 5);
    const std::vector<uint16_t> labels = fill(&announced, c, 5);
    const std::vector<float> before = announced.parameters().back()->to_vector();
    for (int step = 0; step < 3; ++step) {
      plain.differentiate(labels);
      plain.descend(descent);
      announced.announce(descent);
      announced.differentiate(labels);
      if (step == 0) {
        EXPECT_EQ(announced.parameters().back()->to_vector() == before, !descent.is_plain());
      }
      announced.descend(descent);
    }
    for (size_t p = 0; p < plain.parameters().size(); ++p)
      EXPECT_EQ(announced.parameters()[p]->to_vector(), plain.parameters()[p]->to_vector()) << p;
  }
}

// What was announced for a step that never came is forgotten.
TEST(NetworkTest, AStopForgetsWhatWasAnnounced) {
  const Case c{2, 8, 8, 3, 16, 16, 4};
  Network network = make_network(c);
  const std::vector<uint16_t> labels = fill(&network, c, 2);
  network.announce({.rate = 0.1f});
  network.stop();
  const std::vector<float> before = network.parameters().back()->to_vector();
  network.differentiate(labels);
  EXPECT_EQ(network.parameters().back()->to_vector(), before);
}

}  // namespace
}  // namespace bitfed
