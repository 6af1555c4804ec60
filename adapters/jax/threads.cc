// SPDX-License-Identifier: Apache-2.0
#include "adapters/jax/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "adapters/jax/errors.h"

namespace polyop::jax {
namespace {

// A loop whose tasks any thread may take. It waits for tasks that a thread has begun, never for a thread: all threads
// of the pool may be inside of loops.
class Loop {
 public:
  Loop(int64_t tasks, void (*body)(void*, int64_t), void* argument) : tasks_(tasks), body_(body), argument_(argument) {}

  void Work() {
    for (int64_t task = next_.fetch_add(1); task < tasks_; task = next_.fetch_add(1)) {
      body_(argument_, task);
      if (done_.fetch_add(1) + 1 < tasks_) continue;
      const std::lock_guard lock(mutex_);
      finished_.notify_all();
    }
  }
  void Wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return done_.load() == tasks_; });
  }

 private:
  const int64_t tasks_;
  void (*const body_)(void*, int64_t);
  void* const argument_;
  std::atomic<int64_t> next_{0}, done_{0};
  std::mutex mutex_;
  std::condition_variable finished_;
};

int64_t NumThreads(const XLA_FFI_CallFrame& frame) {
  int64_t count = 1;
  XLA_FFI_ThreadPool_NumThreads_Args args = {XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE, nullptr, frame.ctx,
                                             &count};
  // Threads are optional, so that an error only means fewer of them.
  return TakeError(frame, frame.api->XLA_FFI_ThreadPool_NumThreads(&args)).empty() ? count : 1;
}

void Run(void* self, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
  const auto& frame = *static_cast<const XLA_FFI_CallFrame*>(self);
  // Tasks of the pool may start after the loop has ended: they own it, too.
  const auto loop = std::make_shared<Loop>(tasks, body, argument);
  const int64_t helpers = std::min(NumThreads(frame), tasks) - 1;
  for (int64_t i = 0; i < helpers; ++i) {
    auto owner = std::make_unique<std::shared_ptr<Loop>>(loop);
    const auto work = [](void* data) {
      const std::unique_ptr<std::shared_ptr<Loop>> own(static_cast<std::shared_ptr<Loop>*>(data));
      (*own)->Work();
    };
    XLA_FFI_ThreadPool_Schedule_Args args = {XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE, nullptr, frame.ctx, work,
                                             owner.get()};
    if (!TakeError(frame, frame.api->XLA_FFI_ThreadPool_Schedule(&args)).empty()) break;
    (void)owner.release();
  }
  loop->Work();
  loop->Wait();
}

}  // namespace

polyop_threads ThreadsOf(XLA_FFI_CallFrame* frame) { return {frame, Run}; }

}  // namespace polyop::jax
