// SPDX-License-Identifier: Apache-2.0
// The launch context of CPU kernels: threads and scratch memory.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <type_traits>

#include "platform/mutex.h"

namespace polyop {

/// A runtime's parallel loop and allocator, as function pointers because adapters wrap C APIs.
struct ContextBackend {
  void* self = nullptr;
  /// Calls body(argument, i) for each i in [0, tasks), possibly on several threads, and waits for all.
  void (*parallel)(void* self, int64_t tasks, void (*body)(void*, int64_t), void* argument) = nullptr;
  /// Returns memory aligned to at least 64 bytes, or null.
  void* (*allocate)(void* self, size_t bytes) = nullptr;
  void (*release)(void* self, void* memory) = nullptr;
};

/// Uninitialised scratch memory of one launch, aligned to 64 bytes. `data()` is null if out of memory.
template <class T>
class Scratch {
 public:
  static_assert(std::is_trivially_destructible_v<T>);
  Scratch(const ContextBackend* backend, int64_t count) : backend_(backend), count_(count) {
    size_t bytes = 0;
    if (count < 0 || __builtin_mul_overflow(count, sizeof(T), &bytes)) return;
    // A vector load of the last element may read bytes after it, so one vector is appended.
    data_ = static_cast<T*>(backend->allocate(backend->self, bytes + 64));
  }
  Scratch(Scratch&& other) noexcept : backend_(other.backend_), data_(other.data_), count_(other.count_) {
    other.data_ = nullptr;
  }
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (data_ != nullptr) backend_->release(backend_->self, data_);
  }

  T* data() const { return data_; }
  int64_t size() const { return count_; }
  T& operator[](int64_t i) const { return data_[i]; }
  std::span<T> span() const { return {data_, static_cast<size_t>(count_)}; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  const ContextBackend* backend_;
  T* data_ = nullptr;
  int64_t count_;
};

class Context {
 public:
  explicit Context(const ContextBackend& backend) : backend_(backend) {}

  /// Calls body(begin, end) or body(task, begin, end) on disjoint ranges that cover [0, total). All but the last have
  /// at least `grain` items. `task` in [0, NumTasks(total, grain)) identifies the range, for example to index scratch
  /// memory. The ranges depend only on `total` and `grain`, not on the number of threads, so results do not depend on
  /// it either. Requires: the body does not throw (an exception on a runtime's worker thread hangs the session) and
  /// does not call Allocate.
  template <class Body>
  void ParallelFor(int64_t total, int64_t grain, const Body& body) const {
    if (total <= 0) return;
    const int64_t chunk = ChunkSize(total, grain);
    const int64_t tasks = NumTasks(total, grain);
    struct Loop {
      const Body& body;
      int64_t total, chunk;
      void Run(int64_t task) const {
        const int64_t begin = task * chunk, end = std::min(total, begin + chunk);
        if constexpr (std::is_invocable_v<const Body&, int64_t, int64_t, int64_t>) {
          body(task, begin, end);
        } else {
          body(begin, end);
        }
      }
    } loop{body, total, chunk};
    if (tasks == 1) return loop.Run(0);
    backend_.parallel(
        backend_.self, tasks, [](void* argument, int64_t task) { static_cast<const Loop*>(argument)->Run(task); },
        &loop);
  }

  /// Like ParallelFor, calls body(scratch, begin, end): `scratch` points to `count` elements that no other running body
  /// uses. The memory is in proportion to the threads that compute, not to the ranges. Worker threads allocate it, one
  /// at a time. Returns false if memory is missing: not all ranges are computed then.
  template <class T, class Body>
  [[nodiscard]] bool ParallelForWithScratch(int64_t total, int64_t grain, int64_t count, const Body& body) const {
    ScratchOfThreads<T> scratch(&backend_, count);
    std::atomic<bool> enough = true;
    ParallelFor(total, grain, [&](int64_t begin, int64_t end) {
      T* const memory = scratch.Take();
      if (memory == nullptr) {
        enough = false;
        return;
      }
      body(memory, begin, end);
      scratch.Return(memory);
    });
    return enough;
  }

  /// Returns the number of ranges of ParallelFor, at most kMaxTasks.
  static int64_t NumTasks(int64_t total, int64_t grain) {
    const int64_t chunk = ChunkSize(total, grain);
    return total <= 0 ? 0 : (total + chunk - 1) / chunk;
  }

  /// Allocates scratch for `count` elements. The caller checks it before use.
  template <class T>
  Scratch<T> Allocate(int64_t count) const {
    return Scratch<T>(&backend_, count);
  }

  /// Balances load for 2 to 16 threads at a low cost of starting tasks.
  static constexpr int64_t kMaxTasks = 64;

 private:
  // Scratch of `count` elements for each body that runs: those that have returned leave theirs to later ones.
  template <class T>
  class ScratchOfThreads {
   public:
    ScratchOfThreads(const ContextBackend* backend, int64_t count) : backend_(backend), count_(count) {}

    // Returns null if out of memory.
    T* Take() {
      const std::lock_guard lock(mutex_);
      if (num_free_ > 0) return free_[static_cast<size_t>(--num_free_)];
      std::optional<Scratch<T>>& added = all_[static_cast<size_t>(num_all_++)];
      return added.emplace(backend_, count_).data();
    }
    void Return(T* memory) {
      const std::lock_guard lock(mutex_);
      free_[static_cast<size_t>(num_free_++)] = memory;
    }

   private:
    const ContextBackend* backend_;
    int64_t count_;
    Mutex mutex_;
    std::array<std::optional<Scratch<T>>, kMaxTasks> all_;
    std::array<T*, kMaxTasks> free_{};
    int num_all_ = 0, num_free_ = 0;
  };

  static int64_t ChunkSize(int64_t total, int64_t grain) {
    return std::max({grain, int64_t{1}, (total + kMaxTasks - 1) / kMaxTasks});
  }

  const ContextBackend& backend_;
};

/// Returns the grain for items that take about `nanoseconds` each, so that a task takes at least 20 us.
constexpr int64_t GrainFor(double nanoseconds) {
  return std::max<int64_t>(1, static_cast<int64_t>(20000.0 / std::max(nanoseconds, 0.01)));
}

}  // namespace polyop
