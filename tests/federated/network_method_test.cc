// What holds of every method that trains networks round by round.

#include "bitfed/federated/network/network_method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "bitfed/base/thread_pool.h"
#include "tests/base/error_text.h"
#include "tests/federated/dark_and_light.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class NetworkMethodTest : public testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<Method> method(const std::string& more = "",
                                        const Dataset& prototype = some_images(0),
                                        const Trainers* trainers = nullptr) {
    return hand_made::method_of(
        "rounds = 4\n[model]\nname = \"cnn4\"\nwidth = 16\n[client]\nbatch = 8\nepochs = 5\n"
        "[method]\nname = \"" +
            std::string(GetParam()) + "\"\n" + more,
        prototype, 3, trainers);
  }
  // What a client makes of the server's broadcast, as it arrives.
  static State trained(const Method& method, const State& broadcast, const Dataset& data, uint32_t client) {
    return decode(encode(method.make_client()->train(broadcast, data, context_of(client))), "upload");
  }
  // What the model says of the data after four rounds of four clients that all have it.
  static std::vector<uint16_t> learned(const Method& method, const Dataset& data) {
    const auto server = method.make_server();
    for (uint32_t round = 1; round <= 4; ++round) {
      const State broadcast = server->broadcast(round);
      for (uint32_t client = 0; client < 4; ++client)
        server->accept(client, trained(method, broadcast, data, 10 * round + client));
      server->finish_round(round);
    }
    ThreadPool pool(1);
    return predict(*server->model(), data, pool);
  }
};

TEST_P(NetworkMethodTest, LearnsDarkFromLight) {
  const Dataset data = some_images(40);
  EXPECT_EQ(learned(*method(), data), data.labels);
}

// A trainer of several clients gives each the upload of a trainer of its own, whatever their sizes; one that
// fails does not hold up the others.
TEST_P(NetworkMethodTest, ACohortUploadsWhatItsClientsWould) {
  const Trainers four{.make = make_cpu_trainer, .cohort = 4};
  const auto alone = method();
  const auto together = method("", some_images(0), &four);
  const State broadcast = alone->make_server()->broadcast(2);
  const std::vector<Dataset> data = {some_images(17), some_images(1), some_images(40), some_images(9)};
  const auto half = together->make_client();
  EXPECT_EQ(alone->make_client()->cohort(), 1u);
  EXPECT_EQ(half->cohort(), 4u);
  std::vector<ClientContext> contexts;
  for (uint32_t client = 0; client < 4; ++client) contexts.push_back(context_of(client));
  contexts[3].progress = [](double) { throw input_error("a client that fails"); };
  std::vector<CohortClient> clients;
  for (size_t client = 0; client < 4; ++client) clients.push_back({data[client], contexts[client]});
  ThreadPool pool(3);
  const std::vector<CohortUpload> uploads = half->train_cohort(broadcast, clients, &pool);
  ASSERT_EQ(uploads.size(), 4u);
  for (uint32_t client = 0; client < 3; ++client) {
    ASSERT_EQ(uploads[client].error, nullptr);
    EXPECT_EQ(encode(uploads[client].upload), encode(trained(*alone, broadcast, data[client], client)))
        << client;
  }
  EXPECT_EQ(error_text([&] { std::rethrow_exception(uploads[3].error); }), "a client that fails");
}

// Of real networks alone, and only where a device has it; a note says so.
TEST_P(NetworkMethodTest, PrecisionOfTensorCores) {
  const std::string name = GetParam();
  const std::string tf32 = "[client]\nprecision = \"tf32\"\n[method]\nname = \"" + name + "\"\n";
  const auto made = [&](const std::string& recipe, const Trainers* trainers) {
    return hand_made::method_of("[model]\nname = \"cnn4\"\nwidth = 16\n" + recipe, some_images(0), 3,
                                trainers);
  };
  const Trainers device{.cohort = 4, .device = "a GPU", .tf32 = true};
  if (name == "fedbnn") return;  // reads no such key
  EXPECT_THAT(error_text([&] { made(tf32, nullptr); }),
              HasSubstr("client.precision: found 'tf32', expected 'exact': the tensor cores of a GPU"));
  EXPECT_THAT(made(tf32, &device)->make_server()->notes(), Contains(HasSubstr("precision = \"tf32\"")));
  EXPECT_NO_THROW(made("[client]\nprecision = \"exact\"\n[method]\nname = \"" + name + "\"\n", nullptr));
}

TEST_P(NetworkMethodTest, ThreadsDoNotChangeTheServer) {
  ThreadPool pool(3);
  const auto fed = method();
  const auto alone = fed->make_server();
  const auto together = fed->make_server();
  together->use(pool);
  for (uint32_t client = 0; client < 3; ++client) {
    const State upload = trained(*fed, alone->broadcast(1), some_images(5 + client), client);
    alone->accept(client, upload);
    together->accept(client, upload);
  }
  // Refused as a whole, whichever thread finds it out.
  State bad = trained(*fed, alone->broadcast(1), some_images(5), 3);
  bad.add_scalar<float>("another", 1);
  EXPECT_THAT(error_text([&] { together->accept(3, bad); }), HasSubstr("tensors, expected"));
  alone->finish_round(1);
  together->finish_round(1);
  EXPECT_EQ(together->save(), alone->save());
}

// A client with a single image, and a batch that ends with one; and the same upload every time.
// A half trains its clients with the same trainers, one after the other.
// Together, in parts and with threads, is the same as one after the other; one that does not fit leaves the
// half as it was.
TEST_P(NetworkMethodTest, UploadsThatAreThereTogether) {
  ThreadPool pool(3);
  for (const char* more : {"", "[federation]\nnorm_bound = 0.5\n", "[federation]\ncombine = \"median\"\n"}) {
    const auto fed = method(more);
    const auto alone = fed->make_server();
    const auto together = fed->make_server();
    together->use(pool);
    std::vector<State> uploads;
    for (uint32_t client = 0; client < 4; ++client)
      uploads.push_back(trained(*fed, alone->broadcast(1), some_images(3 + 2 * client), client));
    State bad("upload 9");
    for (const Tensor& tensor : uploads[0].tensors()) {
      Tensor copy = tensor;
      const float nan = std::nanf("");
      if (!copy.shape.empty() && copy.dtype == Dtype::kF32)
        std::memcpy(copy.bytes.data() + copy.bytes.size() - sizeof nan, &nan, sizeof nan);
      bad.add(std::move(copy));
    }
    const std::vector<ArrivedUpload> with_bad = {{0, uploads[0]}, {1, uploads[1]}, {9, bad}};
    // Scaffold has no form of its own: it accepts what comes before the bad one.
    const auto refusing = std::string(GetParam()) == "scaffold" ? fed->make_server() : nullptr;
    EXPECT_THAT(error_text([&] { (refusing ? refusing : together)->accept_all(with_bad); }),
                HasSubstr("upload 9: tensor '"));
    for (uint32_t client = 0; client < 4; ++client) alone->accept(client, uploads[client]);
    const std::vector<ArrivedUpload> three = {{3, uploads[3]}, {0, uploads[0]}, {2, uploads[2]}};
    const ArrivedUpload last{1, uploads[1]};
    together->accept_all(three);
    together->accept_all({&last, 1});
    together->accept_all({});
    alone->finish_round(1);
    together->finish_round(1);
    EXPECT_EQ(encode(together->save()), encode(alone->save())) << more;
  }
}

TEST_P(NetworkMethodTest, ATrainerForgetsItsLastClient) {
  const auto method = this->method();
  const auto server = method->make_server();
  const State broadcast = server->broadcast(2);
  const auto half = method->make_client();
  const Dataset data = some_images(24);
  for (const size_t samples : {24u, 24u, 5u, 24u}) {
    std::vector<uint32_t> rows(samples);
    std::iota(rows.begin(), rows.end(), 0u);
    const Dataset own = subset(data, rows);
    const auto client = static_cast<uint32_t>(samples);
    EXPECT_EQ(decode(encode(half->train(broadcast, own, context_of(client))), "upload").sha256(),
              trained(*method, broadcast, own, client).sha256());
  }
}

TEST_P(NetworkMethodTest, UploadsAddedUpElsewhere) {
  const auto method = this->method("[federation]\nnorm_bound = 2.0\n");
  const auto here = method->make_server();
  const auto alone = method->make_server();
  const auto there = method->make_server();
  const bool adds_up = std::string(GetParam()) != "scaffold";  // its server looks at each client's steps
  EXPECT_EQ(here->adds_up(), adds_up);
  if (!adds_up) return;
  for (uint32_t round = 1; round <= 2; ++round) {
    const State broadcast = decode(encode(here->broadcast(round)), "broadcast");
    there->restore(broadcast);
    for (uint32_t client = 0; client < 5; ++client) {
      const State upload = trained(*method, broadcast, some_images(8 + client), client);
      alone->accept(client, upload);
      (client % 2 == 0 ? here : there)->accept(client, upload);
    }
    here->accept_part(decode(encode(there->take_part()), "part"));
    here->finish_round(round);
    alone->finish_round(round);
    EXPECT_EQ(here->save().sha256(), alone->save().sha256());
  }
  EXPECT_FALSE(this->method("[federation]\ncombine = \"median\"\n")->make_server()->adds_up());
}

TEST_P(NetworkMethodTest, SingleImagesAndTheSameTwice) {
  const auto fed = method();
  const auto server = fed->make_server();
  const State broadcast = server->broadcast(2);
  for (const size_t count : {17u, 1u}) {
    const State upload = trained(*fed, broadcast, some_images(count), 4);
    EXPECT_EQ(upload, trained(*fed, broadcast, some_images(count), 4));
    EXPECT_NO_THROW(server->accept(0, upload)) << count;
  }
}

// A class that nobody has: no number stops being one, and what is there is learned.
TEST_P(NetworkMethodTest, AClassAbsentEverywhere) {
  Dataset prototype = some_images(0);
  prototype.class_names.emplace_back("absent");
  Dataset data = some_images(40);
  data.class_names = prototype.class_names;
  EXPECT_EQ(learned(*method("", prototype), data), data.labels);
}

// A rate at which float overflows within a client's round: said, and never uploaded as if it were a model.
TEST_P(NetworkMethodTest, AnInfiniteLossIsSaidOrEveryNumberIsFinite) {
  const auto fed = method();
  const auto server = fed->make_server();
  const State usual = server->broadcast(1);
  State broadcast;
  for (const Tensor& tensor : usual.tensors()) {
    if (tensor.name != "learning_rate") broadcast.add(tensor);
  }
  broadcast.add_scalar<float>("learning_rate", 1e30f);
  const std::string said = error_text(
      [&] {
        server->accept(0, trained(*fed, broadcast, some_images(40), 1));
        server->finish_round(1);
      },
      Error::Kind::kFailure);
  if (std::string(GetParam()) != "fedbat") {  // its steps are bounded
    EXPECT_THAT(said, HasSubstr("training diverged"));
    EXPECT_THAT(said, HasSubstr("lower client.learning_rate (now 1e+30)"));
  }
  const State saved = server->save();
  for (const Tensor& tensor : saved.tensors()) {
    if (tensor.dtype != Dtype::kF32) continue;
    for (const float number : saved.values<float>(tensor.name, tensor.shape))
      ASSERT_TRUE(std::isfinite(number)) << tensor.name;
  }
}

// A round that nobody answered leaves the model as it was.
TEST_P(NetworkMethodTest, ARoundWithoutUploads) {
  const auto server = method()->make_server();
  const State before = server->save();
  server->finish_round(1);
  EXPECT_EQ(server->save(), before);
}

TEST_P(NetworkMethodTest, SavedAndRestored) {
  const auto fed = method();
  const auto server = fed->make_server();
  server->accept(0, trained(*fed, server->broadcast(1), some_images(9), 1));
  server->finish_round(1);
  const auto other = fed->make_server();
  other->restore(decode(encode(server->save()), "saved"));
  EXPECT_EQ(other->broadcast(2), server->broadcast(2));
  EXPECT_EQ(other->model()->state(), server->model()->state());
}

TEST_P(NetworkMethodTest, AModelThatIsMadeLaterIsOfTheRoundInWhichItWasAskedFor) {
  for (const char* more : {"", "[federation]\nema = 0.75\n"}) {
    const auto fed = method(more);
    const auto server = fed->make_server();
    const auto finish_round = [&](uint32_t round) {
      server->accept(0, trained(*fed, server->broadcast(round), some_images(9), round));
      server->finish_round(round);
    };
    finish_round(1);
    const State then = server->model()->state();
    const auto later = server->model_later();
    finish_round(2);
    EXPECT_EQ(later()->state(), then);
    EXPECT_NE(server->model()->state(), then);
  }
}

// Clients go on from the last round's parameters; the model is that of 3/4 of the first round's and 1/4 of
// the second's.
TEST_P(NetworkMethodTest, AMovingAverageOverTheRounds) {
  const auto fed = method("[federation]\nema = 0.75\n");
  const auto plain = method();
  const auto server = fed->make_server();
  const auto last = plain->make_server();
  std::vector<State> rounds;  // without the average
  for (uint32_t round = 1; round <= 2; ++round) {
    const State upload = trained(*fed, server->broadcast(round), some_images(9), round);
    for (ServerHalf* half : {server.get(), last.get()}) {
      half->accept(0, upload);
      half->finish_round(round);
    }
    rounds.push_back(last->save());
    EXPECT_EQ(server->broadcast(round + 1), last->broadcast(round + 1));
  }
  State mean;
  for (const Tensor& tensor : rounds[0].tensors()) {
    if (tensor.dtype != Dtype::kF32) {
      mean.add(tensor);
      continue;
    }
    std::vector<float> values = rounds[0].values<float>(tensor.name, tensor.shape);
    const std::vector<float> second = rounds[1].values<float>(tensor.name, tensor.shape);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(0.75 * values[i] + 0.25 * second[i]);
    mean.add<float>(tensor.name, tensor.shape, values);
  }
  last->restore(mean);
  EXPECT_EQ(server->model()->state(), last->model()->state());
  const auto resumed = fed->make_server();
  resumed->restore(decode(encode(server->save()), "saved"));
  EXPECT_EQ(resumed->model()->state(), server->model()->state());
  EXPECT_EQ(resumed->save(), server->save());
}

// In the last round two of five clients send their dense layer turned round and a thousand times as large,
// claimed for a million samples. The mean is theirs; the median hardly notices.
TEST_P(NetworkMethodTest, AHostileMinority) {
  const Dataset data = some_images(40);
  ThreadPool pool(1);
  const auto right = [&](const std::string& more) {
    const auto fed = method(more);
    const auto server = fed->make_server();
    for (uint32_t round = 1; round <= 4; ++round) {
      const State broadcast = server->broadcast(round);
      for (uint32_t client = 0; client < 5; ++client) {
        const State upload = trained(*fed, broadcast, data, 10 * round + client);
        const bool hostile = round == 4 && client >= 3;
        State sent;
        for (Tensor tensor : upload.tensors()) {
          if (hostile && tensor.name == "dense.weights") {
            if (tensor.dtype == Dtype::kU8) {  // signs
              for (uint8_t& bits : tensor.bytes) bits = static_cast<uint8_t>(~bits);
            } else {
              std::vector<float> numbers = upload.values<float>(tensor.name, tensor.shape);
              for (float& number : numbers) number *= -1000;
              const auto* first = reinterpret_cast<const uint8_t*>(numbers.data());
              tensor.bytes.assign(first, first + numbers.size() * sizeof(float));
            }
          }
          if (hostile && tensor.name == "samples") tensor.bytes = {0x40, 0x42, 0x0f, 0};  // 1,000,000
          sent.add(tensor);
        }
        server->accept(client, sent);
      }
      server->finish_round(round);
    }
    const std::vector<uint16_t> said = predict(*server->model(), data, pool);
    return std::inner_product(said.begin(), said.end(), data.labels.begin(), size_t{0}, std::plus<>(),
                              std::equal_to<>());
  };
  if (std::string(GetParam()) != "fedbat") {  // one bit a weight: no round can do so much harm
    EXPECT_LE(right(""), 20u);                // of 40: no better than one class for all
  }
  EXPECT_GE(right("[federation]\ncombine = \"median\"\n"), 38u);
}

INSTANTIATE_TEST_SUITE_P(Methods, NetworkMethodTest,
                         testing::Values("fedavg", "fedbnn", "fedbat", "fedmud", "fedprox", "scaffold"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace bitfed
