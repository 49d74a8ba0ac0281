#include "cli/device.h"

#include <charconv>

#include "bitfed/base/error.h"
#ifdef BITFED_CUDA
#include <malloc.h>

#include "bitfed/cuda/cuda_trainer.h"
#endif

namespace bitfed::cli {
namespace {

#ifdef BITFED_CUDA
constexpr size_t kCohort = 64;  // clients that train in one step

// A round copies the parameters of every client, tens of megabytes each, several times. Memory that the C
// library gives back to the kernel after each copy costs ten times as much as the copies.
void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
  mallopt(M_ARENA_MAX, 1);        // a thread's own arena would be given back all the same
#endif
}

Trainers open_gpu(int index) {
  const cuda::DeviceInfo info = cuda::open_device(index);
  keep_freed_memory();
  Trainers trainers = cuda::make_trainers(kCohort, index);
  trainers.device = fmt::format("{}, {:.0f} GiB, driver for {}", info.name,
                                static_cast<double>(info.memory) / (1 << 30), info.driver);
  return trainers;
}

bool has_gpu() {
  return cuda::device_count() > 0;
}
#else
Trainers open_gpu(int /*index*/) {
  throw input_error("--device cuda: this program was built without CUDA, expected cpu or auto");
}

bool has_gpu() {
  return false;
}
#endif

int index_of(const std::string& name) {
  if (name == "cuda") return 0;
  int index = -1;
  const std::string number = name.starts_with("cuda:") ? name.substr(5) : "";
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() || index < 0)
    throw input_error("--device: found '{}', expected auto, cpu, cuda or cuda:N", name);
  return index;
}

}  // namespace

void add_device_option(Command* command, std::string* device) {
  command
      ->add_option(
          "--device", *device,
          "Where networks are trained: cpu, cuda (an NVIDIA GPU), cuda:N, or auto: a GPU if there is one.\n"
          "The model is the same, byte for byte")
      ->show_default()
      ->type_name("DEVICE");
}

std::shared_ptr<const Trainers> open_device(const std::string& name) {
  if (name == "cpu" || (name == "auto" && !has_gpu())) return nullptr;
  if (name != "auto") return std::make_shared<const Trainers>(open_gpu(index_of(name)));
  try {
    return std::make_shared<const Trainers>(open_gpu(0));
  } catch (const Error& unfit) {
    if (unfit.kind() != Error::Kind::kInput) throw;
    fmt::print(stderr, "bitfed: {}; training on the CPU\n", unfit.what());
    return nullptr;
  }
}

}  // namespace bitfed::cli
