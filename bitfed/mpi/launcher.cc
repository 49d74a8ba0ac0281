#include "bitfed/mpi/launcher.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = "bitfed-mpi.so";

const Communicator* connected = nullptr;

// The number of ranks, as launchers tell it: Open MPI's, MPICH's and Intel's mpirun, Slurm's srun. A batch
// script outside srun has none of these variables.
long ranks_in_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (const char* value = std::getenv(name)) return std::strtol(value, nullptr, 10);
  }
  return 1;
}

// Next to the program, as it is built, or in the library folder, as it is installed.
std::vector<fs::path> module_places() {
  std::error_code code;
  const fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path();
  return {folder / kModule, (folder / BITFED_MODULES_FROM_PROGRAM / kModule).lexically_normal()};
}

void* open_module(long ranks) {
  std::vector<std::string> tried;
  for (const fs::path& place : module_places()) {
    std::error_code code;
    tried.push_back(place.string());
    if (!fs::exists(place, code)) continue;
    // MPI libraries load parts of themselves, which look for the names of the first.
    if (void* module = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL)) return module;
    throw failure("{}: cannot be loaded: {}", place.string(), dlerror());
  }
  throw failure(
      "started as one of {} ranks, but the module for MPI is neither of {}: build bitfed where the "
      "development package of an MPI library is installed, or start it without a launcher",
      ranks, fmt::join(tried, ", "));
}

}  // namespace

Communicator* connect_ranks() {
  const long ranks = ranks_in_environment();
  if (ranks <= 1) return nullptr;
  // Ranks sleep for some 10 microseconds while they wait for messages, see Pause: Linux would make it 50
  // more.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  using Connect = Communicator*();
  // Its number changes with Communicator: the module of another build is refused.
  void* const module = open_module(ranks);
  auto* const connect = reinterpret_cast<Connect*>(dlsym(module, "bitfed_connect_ranks_2"));
  if (connect == nullptr) throw failure("{}: not a module of bitfed: {}", kModule, dlerror());
  static const std::unique_ptr<Communicator> communicator(connect());
  if (communicator->size() == ranks) {
    connected = communicator.get();
    return communicator.get();
  }
  throw failure(
      "started as one of {} ranks, but MPI finds {}: with Slurm choose an interface that both know, such as "
      "srun --mpi=pmix (srun --mpi=list shows them)",
      ranks, communicator->size());
}

std::string own_rank_prefix() {
  return connected == nullptr ? "" : fmt::format("rank {} on {}: ", connected->rank(), host_name());
}

// Open MPI's, MPICH's and Intel's mpirun before srun: within a batch job Slurm's variable is that of the
// batch script.
unsigned local_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    if (const char* value = std::getenv(name))
      return static_cast<unsigned>(std::max(0L, std::strtol(value, nullptr, 10)));
  }
  return 0;
}

std::string program_identity(const std::string& version) {
  return fmt::format("{} (build {})", version, sha256_hex(read_file("/proc/self/exe")).substr(0, 12));
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace bitfed
