// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/thread_pool.h"

#include "platform/memory.h"

namespace polyop {

ThreadPool::ThreadPool(int threads) {
  backend_.self = this;
  backend_.parallel = [](void* self, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
    static_cast<ThreadPool*>(self)->Parallel(tasks, body, argument);
  };
  backend_.allocate = [](void*, size_t bytes) { return AllocateAligned(bytes); };
  backend_.release = [](void*, void* memory) { FreeAligned(memory); };
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunTasks() {
  for (int64_t i = next_.fetch_add(1); i < tasks_; i = next_.fetch_add(1)) body_(argument_, i);
}

void ThreadPool::Work() {
  int64_t last_generation = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    start_.wait(lock, [&] { return stop_ || generation_ != last_generation; });
    if (stop_) return;
    last_generation = generation_;
    lock.unlock();
    RunTasks();
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

void ThreadPool::Parallel(int64_t tasks, void (*body)(void*, int64_t), void* argument) {
  if (workers_.empty()) {
    for (int64_t i = 0; i < tasks; ++i) body(argument, i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    tasks_ = tasks;
    body_ = body;
    argument_ = argument;
    next_.store(0);
    busy_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  start_.notify_all();
  RunTasks();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return busy_ == 0; });
}

}  // namespace polyop
