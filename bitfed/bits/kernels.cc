#include "bitfed/bits/kernels.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/bits/isa/units.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace bitfed {
namespace {

// Threads that race for the first choice all make the same one.
std::atomic<const Kernels*> in_use = nullptr;

const Kernels* find(std::string_view name) {
  std::vector<std::string> names;
  for (const Kernels* table : supported_kernels()) {
    if (name == table->name) return table;
    names.emplace_back(table->name);
  }
  throw input_error("BITFED_ISA: found '{}', expected an instruction set that this CPU supports{}", name,
                    suggestion(name, names));
}

#if defined(__x86_64__)
// AMX tile registers are large: Linux saves them only for a process that has requested permission.
bool may_use_tiles() {
#if defined(__linux__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kAmxFlags = 3u << 24;  // AMX-TILE, AMX-INT8; Clang 14 has no name for them
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmxFlags) != kAmxFlags) return false;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  static const bool kGranted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return kGranted;
#else
  return false;
#endif
}
#endif

}  // namespace

// Each table needs every extension that its unit is compiled for, in bits/ and in nn/; see the flags in the
// build.
std::vector<const Kernels*> supported_kernels() {
  std::vector<const Kernels*> tables = {&isa::scalar_kernels()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"))
    tables.push_back(&isa::avx2_kernels());
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"))
    tables.push_back(&isa::vnni_kernels());
  if (tables.back()->instruction_set == InstructionSet::kVnni && __builtin_cpu_supports("avx512vpopcntdq")) {
    tables.push_back(&isa::avx512_kernels());
    if (__builtin_cpu_supports("avx512vbmi") && may_use_tiles()) tables.push_back(&isa::amx_kernels());
  }
#elif defined(__aarch64__)
  tables.push_back(&isa::neon_kernels());
#endif
  return tables;
}

const Kernels& kernels() {
  const Kernels* table = in_use.load(std::memory_order_acquire);
  if (table == nullptr) {
    const char* forced = std::getenv("BITFED_ISA");
    table = forced != nullptr && *forced != '\0' ? find(forced) : supported_kernels().back();
    in_use.store(table, std::memory_order_release);
  }
  return *table;
}

void force_kernels(std::string_view name) {
  in_use.store(find(name), std::memory_order_release);
}

}  // namespace bitfed
