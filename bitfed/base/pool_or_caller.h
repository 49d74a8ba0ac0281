#pragma once

#include "bitfed/base/thread_pool.h"

namespace bitfed {

// ThreadPool::for_each and for_ranges where there may be no pool: null runs on the caller's thread.
inline void for_each(ThreadPool* pool, size_t count, const std::function<void(size_t)>& body) {
  if (pool != nullptr) return pool->for_each(count, body);
  for (size_t index = 0; index < count; ++index) body(index);
}

inline void for_ranges(ThreadPool* pool, size_t count, size_t grain,
                       const std::function<void(size_t, size_t)>& body) {
  if (pool != nullptr) return pool->for_ranges(count, grain, body);
  body(0, count);
}

}  // namespace bitfed
