#include "bitfed/cuda/emulation.h"

#include <setjmp.h>
#include <ucontext.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/cuda/device.h"

thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace bitfed::cuda {
namespace {

constexpr size_t kStackBytes = 128 << 10;

// A thread of a block, on a stack of its own. It runs the kernel of one block after the other.
struct Fibre {
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  bool started = false;
  bool done = false;
  jmp_buf place;
};

// The threads of the block that runs.
struct Block {
  std::vector<std::unique_ptr<Fibre>> fibres;
  jmp_buf scheduler;
  Fibre* running = nullptr;
  const std::function<void()>* kernel = nullptr;
  std::vector<float4> shared;
};

thread_local Block block;

void yield() {
  if (_setjmp(block.running->place) == 0) _longjmp(block.scheduler, 1);
}

void run_threads() {
  while (true) {
    (*block.kernel)();
    block.running->done = true;
    yield();
  }
}

// Goes on with a thread until it comes to a barrier or to its end. Jumps, where a context's own function
// would make a system call.
void resume(Fibre* fibre) {
  block.running = fibre;
  if (_setjmp(block.scheduler) != 0) return;
  if (fibre->started) _longjmp(fibre->place, 1);
  fibre->started = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fibre->stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, run_threads, 0);
  setcontext(&context);
}

void run_block(unsigned threads) {
  while (block.fibres.size() < threads) block.fibres.push_back(std::make_unique<Fibre>());
  for (unsigned i = 0; i < threads; ++i) block.fibres[i]->done = false;
  for (bool alive = true; alive;) {
    alive = false;
    for (unsigned i = 0; i < threads; ++i) {
      Fibre* fibre = block.fibres[i].get();
      if (fibre->done) continue;
      threadIdx = dim3(i, 0, 0);
      resume(fibre);
      alive = alive || !fibre->done;
    }
  }
}

}  // namespace

void* emulated_shared() {
  return block.shared.data();
}

void emulate(const dim3& grid, unsigned threads, size_t shared, const std::function<void()>& kernel) {
  block.kernel = &kernel;
  gridDim = grid;
  blockDim = dim3(threads);
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        blockIdx = dim3(x, y, z);
        block.shared.assign(shared / sizeof(float4) + 1, {NAN, NAN, NAN, NAN});  // nobody may rely on zeros
        run_block(threads);
      }
    }
  }
}

}  // namespace bitfed::cuda

void __syncthreads() {
  const dim3 own = threadIdx;
  bitfed::cuda::yield();
  threadIdx = own;
}

namespace {

// A value passes through the memory of the block's threads: all have written when the first one reads, and
// all have read when the first one goes on.
template <typename Number>
Number exchange(Number value, unsigned lanes) {
  static thread_local std::vector<Number> values;
  const dim3 own = threadIdx;
  values.resize(blockDim.x);
  values[own.x] = value;
  __syncthreads();
  const Number other = values[own.x ^ lanes];
  __syncthreads();
  return other;
}

}  // namespace

float __shfl_xor_sync(unsigned /*mask*/, float value, unsigned lanes) {
  return exchange(value, lanes);
}
double __shfl_xor_sync(unsigned /*mask*/, double value, unsigned lanes) {
  return exchange(value, lanes);
}
unsigned __shfl_xor_sync(unsigned /*mask*/, unsigned value, unsigned lanes) {
  return exchange(value, lanes);
}

namespace bitfed::cuda {

void check_launch(const char* /*what*/) {}

namespace {

EmulatedDevice emulated;
struct {
  std::mutex mutex;
  std::map<void*, size_t> sizes;
  size_t bytes = 0;
  size_t allocations = 0;
} memory_in_use;

}  // namespace

void emulate_device(const EmulatedDevice& device) {
  emulated = device;
}
size_t emulated_bytes() {
  const std::lock_guard lock(memory_in_use.mutex);
  return memory_in_use.bytes;
}
size_t emulated_allocations() {
  const std::lock_guard lock(memory_in_use.mutex);
  return memory_in_use.allocations;
}

void* allocate(size_t bytes) {
  const std::lock_guard lock(memory_in_use.mutex);
  if (bytes > emulated.memory || memory_in_use.bytes > emulated.memory - bytes) throw OutOfMemory(bytes);
  void* memory = std::calloc(bytes + 64, 1);
  memory_in_use.sizes[memory] = bytes;
  memory_in_use.bytes += bytes;
  ++memory_in_use.allocations;
  return memory;
}
void release(void* memory) noexcept {
  const std::lock_guard lock(memory_in_use.mutex);
  memory_in_use.bytes -= memory_in_use.sizes.extract(memory).mapped();
  std::free(memory);
}
void* allocate_pinned(size_t bytes) {
  return std::calloc(bytes + 64, 1);
}
void release_pinned(void* memory) noexcept {
  std::free(memory);
}

Stream::Stream(Kind /*kind*/) {}
Stream::~Stream() = default;
void Stream::copy_to_device(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}
void Stream::copy_to_host(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}
void Stream::copy_within_device(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}
void Stream::clear(void* memory, size_t bytes) const {
  std::memset(memory, 0, bytes);
}
void Stream::wait_for(const Event& /*event*/) const {}
void Stream::synchronise() {}

Event::Event() = default;
Event::~Event() = default;
void Event::record(const Stream& /*stream*/) {}
void Event::wait() {}

bool takes_launch_times() {
  return false;
}

Graph::~Graph() = default;
void Graph::run(Stream* /*stream*/, const std::function<void()>& work) {
  work();
}

DeviceInfo open_device(int /*index*/) {
  if (emulated.refusal != nullptr) throw input_error("{}", emulated.refusal);
  return {"emulated on the CPU", "none", size_t{1} << 30, size_t{1} << 30};
}
void use_device(int /*index*/) {}
int device_count() {
  return 1;
}

}  // namespace bitfed::cuda
