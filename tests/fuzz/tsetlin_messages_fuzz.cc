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

// A model that can be written, read and asked, and that answers with numbers.
void check_model(const Model& model, const Dataset& images) {
  const State state = decode(encode(model.state()), "model");
  if (!(tsetlin_model_from_state(state, "model")->state() == model.state())) __builtin_trap();
  ThreadPool pool(1);
  for (const float score : model.scores(images, pool)) {
    if (!std::isfinite(score)) __builtin_trap();
  }
}

// What the server refuses it refuses in a line; of what it accepts it makes a model.
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
  check_model(*server->model(), images);
}

std::unique_ptr<ServerHalf> server_of_two_exchanges(const Dataset& images) {
  const Config recipe = Config::parse(
      "rounds = 2\n" + std::string(kRecipe) + "[method]\nname = \"fedtm-largest\"\n", "fuzz.toml");
  return make_method({recipe, subset(images, {}), 0})->make_server();
}

// A server after its first round, in which a client that holds all classes has sent clauses of one literal.
State after_first_exchange(const Dataset& images) {
  Bytes rows;
  for (uint8_t row = 0; row < kClasses * 8; ++row) {
    const std::array<uint8_t, 5> bytes = {static_cast<uint8_t>(1 << row % (2 * kPixels)), row, 0, 0, 1};
    rows.insert(rows.end(), bytes.begin(), bytes.end());
  }
  const Bytes clauses = coded(rows);
  State upload;
  upload.add("classes", {kClasses}, std::vector<uint16_t>{0, 1, 2});
  upload.add("samples", {kClasses}, std::vector<uint32_t>{5, 300, 70});
  upload.add("0.clauses", {clauses.size()}, clauses);
  upload.add("0.calibration", {kClasses, 3}, std::vector<float>{30, -20, -10, 25, -30, -25, 20, -20, -15});
  const auto server = server_of_two_exchanges(images);
  server->accept(0, upload);
  server->finish_round(1);
  return server->save();
}

// The margins of the second exchange, from two clients alike.
void correct(const State& message) {
  static const Dataset kImages = all_images();
  static const State kFused = after_first_exchange(kImages);
  const auto server = server_of_two_exchanges(kImages);
  server->restore(kFused);
  for (const uint32_t client : {0u, 1u}) {
    try {
      server->accept(client, message);
    } catch (const Error& error) {
      check_refusal(error);
      return;
    }
  }
  server->finish_round(2);
  check_model(*server->model(), kImages);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::optional<State> message = fuzzed_state({data, size});
  if (!message) return 0;
  correct(*message);
  for (const State& upload : {*message, with_clauses(*message)}) {
    for (const char* method :
         {"fedtm-bank\"\nserver_models = 0.5", "fedtm-bank\"\nserver_models = 4", "fedtmos\"",
          "fedtmos\"\nactions = \"or2\"", "fedtmos-ensemble\"", "fedtm-largest\"", "fedtm\"",
          "fedtm\"\nactions = \"majority\"", "fedtm\"\nactions = \"or2\""})
      fuse(std::string("[method]\nname = \"") + method + "\n", upload);
  }
  return 0;
}
