#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_text.h"
#include "tests/federated/dark_and_light.h"
#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

Dataset some_rows(size_t count) {
  RandomStream random({9, "rows"});
  Dataset data;
  data.name = "some";
  data.columns = {"a", "b", "c"};
  data.class_names = {"low", "high"};
  for (size_t i = 0; i < count; ++i) {
    data.labels.push_back(static_cast<uint16_t>(i % 2));
    for (size_t c = 0; c < 3; ++c)
      data.values.push_back(static_cast<float>(random.uniform() + data.labels[i]));
  }
  return data;
}

std::string recipe_of(const std::string& method, bool table) {
  const bool network = !method.starts_with("fedtm") && method != "fed-bin-mlp" && !table;
  const std::string model = network                        ? "name = \"cnn4\"\nwidth = 16\n"
                            : !method.starts_with("fedtm") ? "name = \"mlp\"\n"
                            : table                        ? "name = \"tm\"\nclauses = 10\n"
                                                           : "name = \"ctm\"\nclauses = 10\n";
  return "rounds = 1\n[model]\n" + model + "[method]\nname = \"" + method + "\"\n[client]\nepochs = 1\n";
}

// Calls run(name, data) for every method with each kind of data that it takes.
template <typename Run>
void for_every_method(const Run& run) {
  for (const MethodEntry& entry : methods()) {
    const std::string name(entry.name);
    if (name != "fed-bin-mlp") run(name, some_images(20));
    if (name.starts_with("fedtm") || name == "fed-bin-mlp" || name == "fedavg") run(name, some_rows(60));
  }
}

ClientContext forgetful() {
  ClientContext context = context_of(4);
  context.keep = [](const State& /*state*/) {};
  return context;
}

// Every round of the method up to its first of training: with a tensor that does not belong in it an upload
// is refused, without it accepted.
void expect_refused(const std::string& name, const Dataset& data) {
  SCOPED_TRACE(name);
  const auto method = hand_made::method_of(recipe_of(name, data.is_table()), subset(data, {}), 3);
  const auto server = method->make_server();
  const auto client = method->make_client();
  const ClientContext context = forgetful();
  for (uint32_t round = server->needs_preparation() ? 0 : 1; round < 2; ++round) {
    State upload = client->train(server->broadcast(round), data, context);
    State junk = upload;
    junk.add_scalar<uint32_t>("junk", 7);
    EXPECT_THAT(error_text([&] { server->accept(0, junk); }), HasSubstr("tensors, expected")) << round;
    server->accept(0, upload);
    server->finish_round(round);
  }
}

TEST(EveryMethod, RefusesJunkTensors) {
  for_every_method(expect_refused);
}

TEST(EveryMethod, HasTheSameClientHalfOnADevice) {
  for_every_method([](const std::string& name, const Dataset& data) {
    SCOPED_TRACE(name);
    const Config recipe = Config::parse(recipe_of(name, data.is_table()), "recipe");
    const Dataset prototype = subset(data, {});
    const MethodContext context{recipe, prototype, 3};
    const auto method = make_method(context);
    const auto server = method->make_server();
    const auto device = make_client_half(context);
    for (uint32_t round = server->needs_preparation() ? 0 : 1; round < 2; ++round) {
      const State broadcast = server->broadcast(round);
      const State upload = method->make_client()->train(broadcast, data, forgetful());
      EXPECT_EQ(encode(device->train(broadcast, data, forgetful())), encode(upload)) << round;
      server->accept(0, upload);
      server->finish_round(round);
    }
  });
}

}  // namespace
}  // namespace bitfed
