#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "bitfed/federated/network/network_method.h"
#include "tests/base/error_text.h"
#include "tests/federated/hand_made.h"
#include "tests/federated/plain_training.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

using Doubles = std::vector<std::vector<double>>;

const std::string kRecipe = plain_recipe("scaffold");

ParameterShapes control_shapes() {
  ParameterShapes shapes;
  for (ParameterShape shape : plain_shapes()) {
    shape.name += ".control";
    if (!shape.statistic) shapes.push_back(shape);
  }
  return shapes;
}

// A federation by the paper's formulas in double precision, beside the method itself.
class Formula {
 public:
  explicit Formula(const NetworkParameters& x) : x_(x), server_(zeros()) {}

  // y <- y - rate (gradient - c_i + c), then c_i <- c_i - c + (x - y) / (K rate).
  NetworkParameters train(uint32_t client, const Dataset& data) {
    if (!own_.contains(client)) own_[client] = zeros();
    const Doubles own = own_[client];
    NetworkParameters y = train_plainly_with(
        x_, data, client, [&](size_t p, size_t i, double /*y*/) { return server_[p][i] - own[p][i]; });
    const double steps = 2 * std::ceil(static_cast<double>(data.size()) / 8);
    for (size_t p = 0; p < y.size(); ++p) {
      for (size_t i = 0; i < y[p].size(); ++i) {
        own_[client][p][i] +=
            (static_cast<double>(x_[p][i]) - static_cast<double>(y[p][i])) / (steps * 0.1) - server_[p][i];
      }
    }
    samples_[client] = static_cast<double>(data.size());
    round_[client] = y;
    return y;
  }

  // Means by samples: of this round's clients for x, of all clients so far for c.
  void finish_round() {
    for (size_t p = 0; p < x_.size(); ++p) {
      for (size_t i = 0; i < x_[p].size(); ++i) {
        double sum = 0, weight = 0;
        for (const auto& [client, y] : round_) {
          sum += samples_[client] * static_cast<double>(y[p][i]);
          weight += samples_[client];
        }
        x_[p][i] = static_cast<float>(sum / weight);
        sum = weight = 0;
        for (const auto& [client, own] : own_) {
          sum += samples_[client] * own[p][i];
          weight += samples_[client];
        }
        server_[p][i] = sum / weight;
      }
    }
    round_.clear();
  }

  const NetworkParameters& x() const { return x_; }
  // Of what is learned.
  NetworkParameters control() const { return floats(server_); }
  NetworkParameters control(uint32_t client) const { return floats(own_.at(client)); }

 private:
  Doubles zeros() const {
    Doubles result;
    for (const auto& values : x_) result.emplace_back(values.size());
    return result;
  }
  static NetworkParameters floats(const Doubles& all) {
    NetworkParameters result;
    for (size_t p = 0; p < all.size(); ++p) {
      if (!plain_shapes()[p].statistic) result.emplace_back(all[p].begin(), all[p].end());
    }
    return result;
  }

  NetworkParameters x_;
  Doubles server_;
  std::map<uint32_t, Doubles> own_;
  std::map<uint32_t, double> samples_;
  std::map<uint32_t, NetworkParameters> round_;
};

// A client of the method, with what it keeps.
State train(const Method& method, const State& broadcast, uint32_t client, const Dataset& data,
            std::map<uint32_t, State>* kept) {
  ClientContext context = context_of(client);
  context.kept = (*kept)[client];
  context.keep = [&](State state) { (*kept)[client] = decode(encode(state), "kept"); };
  return decode(encode(method.make_client()->train(broadcast, data, context)), "upload");
}

// Three clients, of which only two take part in the first and in the last round.
TEST(ScaffoldTest, ThreeRoundsByTheFormulas) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto server = method->make_server();
  Formula formula(read_plain(server->broadcast(1)));
  const std::vector<size_t> images = {20, 10, 15};
  const std::vector<std::vector<uint32_t>> chosen = {{0, 1}, {2, 0}, {1, 2}};
  std::map<uint32_t, State> kept;
  double correction = 0;
  for (uint32_t round = 1; round <= 2; ++round) {
    const State broadcast = server->broadcast(round);
    for (const uint32_t client : chosen[round - 1]) {
      const State upload = train(*method, broadcast, client, some_images(images[client]), &kept);
      const NetworkParameters expected = formula.train(client, some_images(images[client]));
      EXPECT_LT(largest_difference(read_plain(upload), expected), 2e-4) << round << ' ' << client;
      EXPECT_LT(largest_difference(read_parameters(control_shapes(), kept[client]), formula.control(client)),
                2e-3)
          << round << ' ' << client;
      server->accept(client, upload);
    }
    server->finish_round(round);
    formula.finish_round();
    const State next = server->broadcast(round + 1);
    EXPECT_LT(largest_difference(read_plain(next), formula.x()), 2e-4) << round;
    const NetworkParameters control = read_parameters(control_shapes(), next);
    EXPECT_LT(largest_difference(control, formula.control()), 2e-3) << round;
    for (const auto& values : control) {
      for (const float value : values) correction = std::max(correction, std::abs(double{value}));
    }
  }
  EXPECT_GT(correction, 0.05);  // else nothing of this was tested
}

// In the first round nothing is known: it is FedAvg's. Clients send no more than FedAvg's.
TEST(ScaffoldTest, TheFirstRoundIsFedAvg) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto fedavg = hand_made::method_of(plain_recipe("fedavg"), some_images(0), 3);
  std::map<uint32_t, State> kept;
  EXPECT_EQ(train(*method, method->make_server()->broadcast(1), 4, some_images(20), &kept),
            decode(encode(fedavg->make_client()->train(fedavg->make_server()->broadcast(1), some_images(20),
                                                       context_of(4))),
                   "upload"));
}

// Whatever the order in which uploads arrive, and across a checkpoint.
TEST(ScaffoldTest, AnyOrderAndACheckpoint) {
  const auto method = hand_made::method_of(kRecipe, some_images(0), 3);
  const auto run = [&](bool reversed, bool restores) {
    auto server = method->make_server();
    std::map<uint32_t, State> kept;
    for (uint32_t round = 1; round <= 2; ++round) {
      const State broadcast = server->broadcast(round);
      std::vector<uint32_t> clients = {0, 1, 2};
      if (round == 1) clients.pop_back();
      if (reversed) std::reverse(clients.begin(), clients.end());
      for (const uint32_t client : clients)
        server->accept(client, train(*method, broadcast, client, some_images(9 + 7 * client), &kept));
      server->finish_round(round);
      if (!restores) continue;
      const State saved = decode(encode(server->save()), "saved");
      server = method->make_server();
      server->restore(saved);
    }
    return server->broadcast(3);
  };
  const State expected = run(false, false);
  EXPECT_EQ(run(true, false), expected);
  EXPECT_EQ(run(false, true), expected);
}

// A bound of the update's norm bounds its mean step, and a value beyond the range is refused before anything
// has changed.
TEST(ScaffoldTest, HostileUploads) {
  const auto upload_with = [](float value) {
    State upload;
    upload.add_scalar<uint32_t>("samples", 8);
    NetworkParameters parameters;
    for (const ParameterShape& shape : plain_shapes()) parameters.emplace_back(shape.count(), value);
    add_parameters(plain_shapes(), parameters, &upload);
    return upload;
  };
  const auto method = hand_made::method_of(kRecipe + "[federation]\nnorm_bound = 2\n", some_images(0), 3);
  const auto server = method->make_server();
  const State before = server->save();
  EXPECT_THAT(error_text([&] { server->accept(0, upload_with(1e30f)); }), HasSubstr("beyond"));
  EXPECT_THAT(error_text([&] { server->accept(0, upload_with(NAN)); }), HasSubstr("finite"));
  EXPECT_THAT(error_text([&] { server->accept(0, State()); }), HasSubstr("samples"));
  server->finish_round(1);
  EXPECT_EQ(server->save(), before);
  server->accept(0, upload_with(1e6f));
  server->finish_round(2);
  double square = 0;
  for (const auto& values : read_parameters(control_shapes(), server->save())) {
    for (const float value : values) square += double{value} * double{value};
  }
  // One batch of 8 twice, at a rate of 0.1: 2 / (2 * 0.1).
  EXPECT_NEAR(std::sqrt(square), 10, 1e-3);
}

}  // namespace
}  // namespace bitfed
