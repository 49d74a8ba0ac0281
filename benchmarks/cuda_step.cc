// Where the time of a training step on a GPU goes: cuda_step 'name = "resnet10"' [clients] [batch]
// [binary|real|tf32|profile].
// Prints milliseconds per step, of the search for rotations, and of what the host does for a step; "profile":
// the launches of a binary network's step, descent and search.

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "bitfed/base/stopwatch.h"
#include "bitfed/cuda/cohort_network.h"
#include "bitfed/data/augmentation.h"
#include "bitfed/zoo/network/network_builder.h"
#include "bitfed/zoo/network/network_recipe.h"

namespace bitfed {
namespace {

double milliseconds(int times, cuda::CohortNetwork* network, const std::function<void()>& work) {
  work();
  network->stream().synchronise();
  const Stopwatch clock;
  for (int i = 0; i < times; ++i) work();
  network->stream().synchronise();
  return 1000 * clock.seconds() / times;
}

// Without namespaces and parameters; one line a launch.
void print_times(const std::vector<cuda::LaunchTime>& times) {
  double sum = 0;
  for (const cuda::LaunchTime& time : times) {
    char* readable = abi::__cxa_demangle(time.kernel.c_str(), nullptr, nullptr, nullptr);
    std::string name = readable == nullptr ? time.kernel : readable;
    std::free(readable);
    if (const size_t inner = name.find("(anonymous namespace)::"); inner != std::string::npos)
      name = name.substr(inner + 23);
    fmt::print("{:40} {:9.1f} us\n", name.substr(0, name.find('(')), time.microseconds);
    sum += time.microseconds;
  }
  fmt::print("{:40} {:9.1f} us\n", "all", sum);
}

void measure(const std::string& model, size_t clients, size_t batch, const std::string& kind) {
  const bool binary = kind != "real" && kind != "tf32";
  const bool profiled = kind == "profile";
  Dataset data;
  data.height = data.width = 32;
  data.channels = 3;
  data.pixel_mean = {0.5f, 0.5f, 0.5f};
  data.pixel_std = {0.25f, 0.25f, 0.25f};
  data.class_names.assign(10, "class");
  const Config recipe = Config::parse("[model]\n" + model + "\n", "recipe.toml");
  TrainedNetwork trained{read_network(recipe, data, binary)};
  trained.tf32 = kind == "tf32";
  if (binary) trained.rotated = RotatedOptions{.lambda = false, .beta = false};
  cuda::CohortNetwork network(trained, clients, batch);
  Network initial = make_trained_network(trained, 1, RandomStream({1, "network"}));
  const NetworkParameters parameters = parameters_of(initial);
  network.set_all(parameters);
  network.set_anchor(~uint64_t{0});
  RandomStream draws({2, "pixels"});
  const auto step = [&] {
    const auto batches = network.next_batches();
    for (size_t i = 0; i < clients * batch; ++i) batches.labels[i] = static_cast<uint16_t>(i % 10);
    for (size_t i = 0; i < clients; ++i) batches.images[i] = static_cast<uint32_t>(batch);
    network.differentiate();
  };
  for (int turn = 0; turn < 3; ++turn) {
    const auto batches = network.next_batches();
    for (size_t i = 0; i < clients * batch * network.image_bytes(); ++i)
      batches.pixels[i] = static_cast<uint8_t>(draws.next_u32());
    step();
  }
  std::vector<Surrogate> surrogates(clients, surrogate_of_weights(0.5));
  const std::vector<cuda::ClientDescent> descents(clients, {0.001f, 0.9f, 5e-4f, 1});
  if (profiled) {
    cuda::begin_launch_times(network.stream());
    step();
    network.descend(descents);
    network.search_rotations(~uint64_t{0}, surrogates);
    print_times(cuda::end_launch_times());
    return;
  }
  const double of_step = milliseconds(20, &network, step);
  const double of_descent = milliseconds(20, &network, [&] { network.descend(descents); });
  const double of_search =
      milliseconds(3, &network, [&] { network.search_rotations(~uint64_t{0}, surrogates); });
  std::vector<uint8_t> pixels(3072), moved(3072);
  const Stopwatch clock;
  for (size_t i = 0; i < clients * batch; ++i) move_image(data, pixels, ImageMove::draw(&draws), moved);
  const double of_host = 1000 * clock.seconds();
  fmt::print(
      "{} x {}: step {:.3f} ms, descent {:.3f} ms, {:.0f} samples/s; search {:.2f} ms; host {:.3f} ms a step\n",
      clients, batch, of_step, of_descent,
      static_cast<double>(clients * batch) / (of_step + of_descent) * 1000, of_search, of_host);
}

}  // namespace
}  // namespace bitfed

int main(int argc, char** argv) {
  const auto number = [&](int at, unsigned long otherwise) {
    return argc > at ? std::strtoul(argv[at], nullptr, 10) : otherwise;
  };
  const std::string model = argc > 1 ? argv[1] : "name = \"resnet10\"";
  const std::string kind = argc > 4 ? argv[4] : "binary";
  bitfed::cuda::open_device(0);
  bitfed::measure(model, number(2, 10), number(3, 64), kind);
}
