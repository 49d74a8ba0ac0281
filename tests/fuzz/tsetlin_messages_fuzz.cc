#include <cmath>

#include "bitfed/base/config.h"
#include "bitfed/federated/method.h"
#include "bitfed/tsetlin/clause_codec.h"
#include "bitfed/tsetlin/state_codec.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "tests/fuzz/fuzzed_state.h"

namespace {

using namespace bitfed;

constexpr size_t kPixels = 3;
constexpr size_t kClasses = 3;
constexpr const char* kRecipe = "[model]\nname = \"tm\"\nclauses = 8\nthreshold = 15\n";

// All images of kPixels pixels in a row.
Dataset all_images() {
  Dataset images;
  images.name = "fuzz";
  images.height = 1;
  images.width = kPixels;
  images.channels = 1;
  images.class_names = {"a", "b", "c"};
  for (size_t image = 0; image < size_t{1} << kPixels; ++image) {
    for (size_t i = 0; i < kPixels; ++i) images.pixels.push_back(image >> i & 1 ? 255 : 0);
    images.labels.push_back(0);
  }
  return images;
}

// A fuzzer does not hit upon coded clauses: rows of a byte of literals and four of a weight are coded for it.
Bytes coded(const Bytes& rows) {
  constexpr size_t kRowBytes = 5;
  const ClauseLayout layout = clause_layout({1, kPixels, 1, 1, kPixels}, {});
  WeightedClauses clauses{BitMatrix(rows.size() / kRowBytes, layout.literals()), {}};
  for (size_t row = 0; row < rows.size() / kRowBytes; ++row) {
    const uint8_t* bytes = rows.data() + row * kRowBytes;
    clauses.actions.row(row)[0] = bytes[0] & ((1u << layout.literals()) - 1);
    const uint32_t weight = bytes[1] | bytes[2] << 8 | bytes[3] << 16;
    clauses.weights.push_back(bytes[4] % 2 == 0 ? kMaximumWeight : static_cast<int32_t>(1 + weight));
  }
  return encode_clauses(layout, clauses);
}

// The same for automata: a byte of a state each, in the order of the message; weights of 1.
Bytes levels_of(const Bytes& states) {
  constexpr size_t kStates = kClasses * 8 * 2 * kPixels;
  const Automata base = untrained_automata(kClasses * 8, 2 * kPixels);
  Automata automata = base;
  std::copy_n(states.begin(), std::min(states.size(), kStates), automata.states.begin());
  State coded;
  add_levels(automata, base, "0.states", &coded);
  return coded.tensors().front().bytes;
}

State with_clauses(const State& message) {
  State uncoded;
  for (Tensor tensor : message.tensors()) {
    if (tensor.dtype == Dtype::kU8 && (tensor.name == "0.clauses" || tensor.name == "0.familiar")) {
      tensor.bytes = coded(tensor.bytes);
      tensor.shape = {tensor.bytes.size()};
    }
    if (tensor.dtype == Dtype::kU8 && tensor.name == "0.states") {
      tensor.bytes = levels_of(tensor.bytes);
      tensor.shape = {tensor.bytes.size()};
    }
    uncoded.add(std::move(tensor));
  }
  return uncoded;
}

// What the server refuses it refuses in a line; of what it accepts it makes a model that can be written, read
// and asked, and that answers with numbers.
void fuse(const std::string& method, const State& message) {
  const Dataset images = all_images();
  const Config recipe = Config::parse(std::string(kRecipe) + method, "fuzz.toml");
  const auto server = make_method({recipe, subset(images, {}), 0})->make_server();
  for (const uint32_t client : {0u, 1u}) {
    try {
      server->accept(client, message);
    } catch (const Error& error) {
      check_refusal(error);
      return;
    }
  }
  try {
    server->finish_round(1);
  } catch (const Error&) {
    return;  // an empty model
  }
  const std::unique_ptr<Model> model = server->model();
  const State state = decode(encode(model->state()), "model");
  if (!(tsetlin_model_from_state(state, "model")->state() == model->state())) __builtin_trap();
  ThreadPool pool(1);
  for (const float score : model->scores(images, pool)) {
    if (!std::isfinite(score)) __builtin_trap();
  }
}

// A server after the first of two exchanges, in which two clients with all images took part.
State after_first_exchange(const Method& method, const Dataset& images) {
  const auto server = method.make_server();
  const ClientContext context{RandomStream({0, "client", 1, 0}), {}, {}, {}};
  server->accept(0, method.make_client()->train(server->broadcast(1), images, context));
  server->finish_round(1);
  return server->save();
}

// The same of what arrives in the second exchange, at the server and, as a broadcast, at a client.
void fit(const State& message) {
  static const Dataset images = [] {
    Dataset all = all_images();
    for (size_t image = 0; image < all.size(); ++image) all.labels[image] = image % kClasses;
    return all;
  }();
  static const auto method =
      make_method({Config::parse("rounds = 2\n" + std::string(kRecipe) + "[method]\nname = \"fedtm-bank\"\n",
                                 "fuzz.toml"),
                   subset(images, {}), 0});
  static const State saved = after_first_exchange(*method, images);
  if (message.metadata.contains("bitfed.kind")) {
    try {
      const ClientContext context{RandomStream({0, "client", 2, 0}), {}, {}, {}};
      encode(method->make_client()->train(message, images, context));
    } catch (const Error& error) {
      check_refusal(error);
    }
  }
  const auto server = method->make_server();
  server->restore(saved);
  for (const uint32_t client : {0u, 1u}) {
    try {
      server->accept(client, message);
    } catch (const Error& error) {
      check_refusal(error);
      return;
    }
  }
  server->finish_round(2);
  ThreadPool pool(1);
  for (const float score : server->model()->scores(images, pool)) {
    if (!std::isfinite(score)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::optional<State> message = fuzzed_state({data, size});
  if (!message) return 0;
  fit(*message);
  for (const State& upload : {*message, with_clauses(*message)}) {
    for (const char* method :
         {"fedtm-bank\"\nserver_models = 0.5", "fedtm-bank\"\nserver_models = 4", "fedtmos\"",
          "fedtmos\"\nactions = \"or2\"", "fedtmos-ensemble\"", "fedtm-largest\"", "fedtm\"",
          "fedtm\"\nactions = \"majority\"", "fedtm\"\nactions = \"or2\""})
      fuse(std::string("[method]\nname = \"") + method + "\n", upload);
  }
  return 0;
}
