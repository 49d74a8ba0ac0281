#pragma once

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

// Counts all that operator new is asked for, of the whole program: to be included by one file of it.
namespace bitfed {

inline std::atomic<size_t> allocations = 0;
inline std::atomic<size_t> bytes_in_use = 0;

inline void* counted(size_t size, size_t alignment) {
  ++allocations;
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<size_t>(size, 1)) != 0)
    throw std::bad_alloc();
  bytes_in_use += malloc_usable_size(memory);
  return memory;
}

inline void give_back(void* memory) {
  bytes_in_use -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace bitfed

void* operator new(size_t size) {
  return bitfed::counted(size, alignof(std::max_align_t));
}
void* operator new(size_t size, std::align_val_t alignment) {
  return bitfed::counted(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  bitfed::give_back(memory);
}
void operator delete(void* memory, size_t) noexcept {
  bitfed::give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  bitfed::give_back(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  bitfed::give_back(memory);
}
