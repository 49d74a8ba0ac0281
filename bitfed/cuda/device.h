#pragma once

// A kernel is written once. nvcc compiles it for a GPU; with BITFED_CUDA_EMULATED a C++ compiler makes a
// function of it whose threads take turns (emulation.h), so that tests reach every kernel on a machine
// without a GPU.
#ifdef BITFED_CUDA_EMULATED
#include "bitfed/cuda/emulation.h"
#else
#include <cuda_runtime.h>
#endif

#ifdef __CUDACC__
#define BITFED_HOST_DEVICE __host__ __device__
#else
#define BITFED_HOST_DEVICE
#endif

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace bitfed::cuda {

#ifdef BITFED_CUDA_EMULATED
using StreamHandle = void*;
using ExecutableGraph = void*;
using EventHandle = void*;
#else
using StreamHandle = cudaStream_t;
using ExecutableGraph = cudaGraphExec_t;
using EventHandle = cudaEvent_t;
#endif

// Throws Error unless the last call or launch succeeded; `what` says what was asked for.
void check_launch(const char* what);

// Of zeros. Throws OutOfMemory. Of the device that this thread uses.
void* allocate(size_t bytes);
void release(void* memory) noexcept;
void* allocate_pinned(size_t bytes);  // memory of the host that copies need not wait for
void release_pinned(void* memory) noexcept;

// Asked for more memory than the device has left.
struct OutOfMemory : std::bad_alloc {
  explicit OutOfMemory(size_t asked) : bytes(asked) {}
  const char* what() const noexcept override { return "the GPU's memory is full"; }
  size_t bytes;
};

// An array on the device, or, pinned, on the host.
template <typename T, void* (*kAllocate)(size_t) = allocate, void (*kRelease)(void*) noexcept = release>
class Array {
 public:
  Array() = default;
  explicit Array(size_t count) : count_(count), data_(static_cast<T*>(kAllocate(count * sizeof(T)))) {}
  Array(Array&& other) noexcept { *this = std::move(other); }
  Array& operator=(Array&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(data_, other.data_);
    return *this;
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() {
    if (data_ != nullptr) kRelease(data_);
  }

  T* data() const { return data_; }
  size_t size() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }

 private:
  size_t count_ = 0;
  T* data_ = nullptr;
};

template <typename T>
using PinnedArray = Array<T, allocate_pinned, release_pinned>;

class Event;

// Work in sequence; the host goes on without waiting.
class Stream {
 public:
  // kFiller: what it launches gets the processors that other streams leave idle.
  enum class Kind { kFirst, kFiller };
  explicit Stream(Kind kind = Kind::kFirst);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  StreamHandle handle() const { return handle_; }
  void copy_to_device(void* to, const void* from, size_t bytes);
  void copy_to_host(void* to, const void* from, size_t bytes);
  void copy_within_device(void* to, const void* from, size_t bytes);
  void clear(void* memory, size_t bytes) const;
  void wait_for(const Event& event) const;  // what follows here, not the host
  void synchronise();

 private:
  StreamHandle handle_ = nullptr;
};

// A point in a stream that the host, or another stream, can wait for.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(const Stream& stream);
  void wait();  // at once if nothing was recorded
  EventHandle handle() const { return handle_; }

 private:
  EventHandle handle_ = nullptr;
};

// Launches that are recorded once and repeated at the cost of one.
class Graph {
 public:
  Graph() = default;
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The first time it runs `work` to record it, which may only launch kernels and clear memory.
  void run(Stream* stream, const std::function<void()>& work);

 private:
  ExecutableGraph graph_ = nullptr;
};

struct Blocks {
  size_t x = 1;
  size_t y = 1;
  size_t z = 1;
};

constexpr size_t kPlainShared = 48 << 10;  // a kernel that needs more must be allowed it

// What kernels take, for benchmarks: between begin and end, every launch is followed by an event, and nothing
// is recorded as a graph.
struct LaunchTime {
  std::string kernel;
  double microseconds;
};
void begin_launch_times(const Stream& stream);  // all launches must go to that stream until the end
bool takes_launch_times();
std::vector<LaunchTime> end_launch_times();
void note_launch(const void* kernel, const Stream& stream);  // by launch()

#if defined(BITFED_CUDA_EMULATED) || defined(__CUDACC__)
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const Blocks& blocks, unsigned threads, size_t shared,
            const Stream& stream, const Arguments&... arguments) {
  const dim3 grid(static_cast<unsigned>(blocks.x), static_cast<unsigned>(blocks.y),
                  static_cast<unsigned>(blocks.z));
#ifdef BITFED_CUDA_EMULATED
  (void)stream;
  emulate(grid, threads, shared, [&] { kernel(arguments...); });
#else
  if (shared > kPlainShared)
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  kernel<<<grid, threads, shared, stream.handle()>>>(arguments...);
  check_launch("kernel");
  note_launch(reinterpret_cast<const void*>(kernel), stream);
#endif
}
#endif

struct DeviceInfo {
  std::string name;    // as the driver gives it
  std::string driver;  // the version of CUDA that it has
  size_t memory = 0;   // bytes
  size_t free = 0;
};

// Chooses the device for this thread. Throws Error with one line where there is none, or it is too old.
DeviceInfo open_device(int index);
void use_device(int index);  // for another thread, after open_device()
int device_count();

}  // namespace bitfed::cuda

// The block's shared memory, whose size the launch gives.
#ifdef BITFED_CUDA_EMULATED
#define BITFED_SHARED(type, name) auto* name = reinterpret_cast<type*>(bitfed::cuda::emulated_shared())
#else
#define BITFED_SHARED(type, name)                  \
  extern __shared__ float4 bitfed_shared_memory[]; \
  auto* name = reinterpret_cast<type*>(bitfed_shared_memory)
#endif
