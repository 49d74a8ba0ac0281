#include "cli/device.h"

#include <algorithm>
#include <charconv>

#include "bitfed/base/error.h"
#include "bitfed/mpi/launcher.h"
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

int gpu_count() {
  return cuda::device_count();
}
#else
Trainers open_gpu(int /*index*/) {
  throw input_error("--device cuda: this program was built without CUDA, expected cpu or auto");
}

int gpu_count() {
  return 0;
}
#endif

int index_of(const std::string& name, unsigned turn) {
  if (name == "cuda" || name == "auto") return static_cast<int>(turn) % std::max(1, gpu_count());
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

std::shared_ptr<const Trainers> open_device(const std::string& name, unsigned turn) {
  if (name == "cpu" || (name == "auto" && gpu_count() == 0)) return nullptr;
  try {
    return std::make_shared<const Trainers>(open_gpu(index_of(name, turn)));
  } catch (const Error& unfit) {
    if (name != "auto" || unfit.kind() != Error::Kind::kInput) throw;
    fmt::print(stderr, "bitfed: {}; training on the CPU\n", unfit.what());
    return nullptr;
  }
}

std::shared_ptr<const Trainers> RankDevice::open() {
  if (is_open_) return trainers_;
  if (rank_ > 0) {
    trainers_ = open_device(name_, local_rank());
  } else if (name_ != "cpu") {
    trainers_ = std::make_shared<const Trainers>(Trainers{.tf32 = true});  // may be asked of the others
  }
  is_open_ = true;
  return trainers_;
}

}  // namespace bitfed::cli
