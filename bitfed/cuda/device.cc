#include "bitfed/cuda/device.h"

#include <fmt/format.h>

#include "bitfed/base/error.h"

namespace bitfed::cuda {
namespace {

// A driver for CUDA 12 runs what is compiled here only from this capability on (H100, H200).
constexpr int kMinCapability = 90;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // forgets it
  throw failure("GPU: {}: {}; the run can be resumed, also with --device cpu", what,
                cudaGetErrorString(status));
}

void* allocated(cudaError_t status, void* memory, size_t bytes) {
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw OutOfMemory(bytes);
  }
  check(status, "allocation");
  return memory;
}

}  // namespace

void check_launch(const char* what) {
  check(cudaGetLastError(), what);
}

void* allocate(size_t bytes) {
  void* memory = nullptr;
  allocated(cudaMalloc(&memory, bytes + 64), memory, bytes);
  // Waited for, since the streams that will use it wait for no other stream.
  check(cudaMemsetAsync(memory, 0, bytes + 64, cudaStreamPerThread), "clearing memory");
  check(cudaStreamSynchronize(cudaStreamPerThread), "clearing memory");
  return memory;
}

void release(void* memory) noexcept {
  cudaFree(memory);
}

void* allocate_pinned(size_t bytes) {
  void* memory = nullptr;
  return allocated(cudaMallocHost(&memory, bytes), memory, bytes) != nullptr ? memory : memory;
}

void release_pinned(void* memory) noexcept {
  cudaFreeHost(memory);
}

Stream::Stream(Kind kind) {
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream");
  check(
      cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, kind == Kind::kFiller ? least : greatest),
      "stream");
}
Stream::~Stream() {
  cudaStreamDestroy(handle_);
}
void Stream::copy_to_device(void* to, const void* from, size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, handle_), "copy");
}
void Stream::copy_to_host(void* to, const void* from, size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, handle_), "copy");
}
void Stream::copy_within_device(void* to, const void* from, size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, handle_), "copy");
}
void Stream::clear(void* memory, size_t bytes) const {
  check(cudaMemsetAsync(memory, 0, bytes, handle_), "clearing memory");
}
void Stream::wait_for(const Event& event) const {
  check(cudaStreamWaitEvent(handle_, event.handle(), 0), "event");
}
void Stream::synchronise() {
  check(cudaStreamSynchronize(handle_), "training");
}

Event::Event() {
  check(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming), "event");
}
Event::~Event() {
  cudaEventDestroy(handle_);
}
void Event::record(const Stream& stream) {
  check(cudaEventRecord(handle_, stream.handle()), "event");
}
void Event::wait() {
  check(cudaEventSynchronize(handle_), "training");
}

namespace {

struct NotedLaunch {
  const void* kernel;
  cudaEvent_t end;
};
bool notes_launches = false;
std::vector<NotedLaunch> noted;

}  // namespace

bool takes_launch_times() {
  return notes_launches;
}

void begin_launch_times(const Stream& stream) {
  notes_launches = true;
  note_launch(nullptr, stream);
}

void note_launch(const void* kernel, const Stream& stream) {
  if (!notes_launches) return;
  NotedLaunch launch{kernel, nullptr};
  check(cudaEventCreate(&launch.end), "event");
  check(cudaEventRecord(launch.end, stream.handle()), "event");
  noted.push_back(launch);
}

std::vector<LaunchTime> end_launch_times() {
  notes_launches = false;
  check(cudaDeviceSynchronize(), "training");
  std::vector<LaunchTime> times;
  for (size_t i = 1; i < noted.size(); ++i) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, noted[i - 1].end, noted[i].end), "event");
    const char* name = nullptr;
    check(cudaFuncGetName(&name, noted[i].kernel), "kernel");
    times.push_back({name, 1000.0 * milliseconds});
  }
  for (const NotedLaunch& launch : noted) cudaEventDestroy(launch.end);
  noted.clear();
  return times;
}

Graph::~Graph() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
}

void Graph::run(Stream* stream, const std::function<void()>& work) {
  if (notes_launches) return work();
  if (graph_ == nullptr) {
    cudaGraph_t recorded = nullptr;
    check(cudaStreamBeginCapture(stream->handle(), cudaStreamCaptureModeThreadLocal), "recording");
    work();
    check(cudaStreamEndCapture(stream->handle(), &recorded), "recording");
    check(cudaGraphInstantiate(&graph_, recorded, 0), "recording");
    cudaGraphDestroy(recorded);
  }
  check(cudaGraphLaunch(graph_, stream->handle()), "training");
}

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return count;
}

DeviceInfo open_device(int index) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    cudaGetLastError();
    throw input_error(
        "--device cuda: {}, expected an NVIDIA GPU and its driver; --device cpu trains without one",
        cudaGetErrorString(status));
  }
  if (index >= count) throw input_error("--device cuda:{}: found {} GPUs, numbered from 0", index, count);
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index), "device");
  const int capability = 10 * properties.major + properties.minor;
  if (capability < kMinCapability) {
    throw input_error("--device cuda:{}: found {} of compute capability {}.{}, expected {}.{} or later",
                      index, properties.name, properties.major, properties.minor, kMinCapability / 10,
                      kMinCapability % 10);
  }
  check(cudaSetDevice(index), "device");
  // Threads that wait for the device leave their processors to evaluation, and to other runs.
  check(cudaSetDeviceFlags(cudaDeviceScheduleYield), "device");
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "driver");
  DeviceInfo info{properties.name, fmt::format("CUDA {}.{}", driver / 1000, driver % 1000 / 10), 0, 0};
  check(cudaMemGetInfo(&info.free, &info.memory), "memory");
  return info;
}

void use_device(int index) {
  check(cudaSetDevice(index), "device");
}

}  // namespace bitfed::cuda
