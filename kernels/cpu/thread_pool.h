// SPDX-License-Identifier: Apache-2.0
// A thread pool for callers without a runtime: the tests, the benchmarks and the program.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "core/context.h"

namespace polyop {

class ThreadPool {
 public:
  /// Creates a pool of `threads` threads, including the calling one.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Returns a backend for Context: this pool and the system's allocator. Requires: one launch at a time.
  const ContextBackend& backend() const { return backend_; }

 private:
  void Work();
  void RunTasks();
  void Parallel(int64_t tasks, void (*body)(void*, int64_t), void* argument);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  int64_t generation_ = 0;
  int busy_ = 0;
  bool stop_ = false;
  int64_t tasks_ = 0;
  void (*body_)(void*, int64_t) = nullptr;
  void* argument_ = nullptr;
  std::atomic<int64_t> next_{0};
  ContextBackend backend_;
};

}  // namespace polyop
