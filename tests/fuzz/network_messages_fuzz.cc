#include <memory>

#include "bitfed/federated/method.h"
#include "tests/fuzz/fuzzed_state.h"

namespace {

using namespace bitfed;

std::unique_ptr<ServerHalf> server_of(const std::string& method) {
  Dataset prototype;
  prototype.name = "fuzz";
  prototype.height = prototype.width = 16;
  prototype.channels = 1;
  prototype.pixel_mean = prototype.pixel_std = {0.5f};
  prototype.class_names = {"a", "b"};
  const Config recipe =
      Config::parse("rounds = 2\n[model]\nname = \"cnn4\"\nwidth = 16\n[method]\nname = \"" + method + "\"\n",
                    "recipe.toml");
  return make_method({recipe, prototype, 1})->make_server();
}

}  // namespace

// Whatever a server accepts must leave it with a model that can be written and read, and a broadcast that
// clients can take. An Error from there is a finding.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::optional<State> message = fuzzed_state({data, size});
  if (!message) return 0;
  static const std::unique_ptr<ServerHalf> servers[] = {server_of("fedbat"), server_of("fedmud"),
                                                        server_of("scaffold")};
  static const State starts[] = {servers[0]->save(), servers[1]->save(), servers[2]->save()};
  for (size_t i = 0; i < std::size(servers); ++i) {
    try {
      servers[i]->accept(0, *message);
    } catch (const Error& error) {
      check_refusal(error);
      continue;
    }
    servers[i]->finish_round(1);
    const State saved = decode(encode(servers[i]->save()), "saved");
    servers[i]->restore(saved);
    servers[i]->model();
    servers[i]->restore(starts[i]);
  }
  return 0;
}
