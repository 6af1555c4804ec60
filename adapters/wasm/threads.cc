// SPDX-License-Identifier: Apache-2.0
#include "adapters/wasm/threads.h"

#include <algorithm>
#include <atomic>

namespace polyop {
namespace {

constexpr int32_t kMaxWorkers = 255;
constexpr int kSpins = 2000;  // some 10 us, which most loops' last tasks take

// The current loop.
int64_t num_tasks;
void (*task_body)(void*, int64_t);
void* task_argument;
std::atomic<int64_t> next_task;

// Counts loops, in steps of 256, and holds the number of workers of the last one in its lowest byte, so that a worker
// reads both at once.
std::atomic<uint32_t> started = 0;
std::atomic<int32_t> num_workers = 0;
std::atomic<int32_t> busy = 0;  // workers that have not finished the loop; negative after a trap

extern "C" __attribute__((import_module("polyop"), import_name("may_sleep"))) int32_t MayThisThreadSleep();

// Sleeps until the value is another one.
template <class T>
void SleepWhile(std::atomic<T>& value, T seen) {
  __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&value), static_cast<int>(seen), -1);
}
template <class T>
void Wake(std::atomic<T>& value) {
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&value), UINT32_MAX);
}

void RunTasks() {
  for (int64_t i; (i = next_task.fetch_add(1)) < num_tasks;) task_body(task_argument, i);
}

}  // namespace

void RunOnWorkers(int64_t tasks, void (*body)(void*, int64_t), void* argument) {
  const auto workers = static_cast<int32_t>(std::min<int64_t>({num_workers, kMaxWorkers, tasks - 1}));
  num_tasks = tasks, task_body = body, task_argument = argument;
  next_task = 0;
  busy = workers;
  if (workers > 0) {
    started = ((started | 255U) + 1) | static_cast<uint32_t>(workers);
    Wake(started);
  }
  RunTasks();
  for (int spins = 0; busy > 0; ++spins) {
    const int32_t seen = busy;
    if (spins > kSpins && seen > 0 && MayThisThreadSleep() != 0) SleepWhile(busy, seen);
  }
  if (busy < 0) __builtin_trap();
}

}  // namespace polyop

extern "C" {

/// The body of a worker; does not return. Requires: no loop runs in this thread.
void polyop_web_work() {
  using namespace polyop;
  uint32_t seen = started;  // first: a loop that counts this worker starts later
  for (const int32_t number = num_workers++;;) {
    while (started == seen) SleepWhile(started, seen);
    seen = started;
    if (number >= static_cast<int32_t>(seen & 255U)) continue;
    RunTasks();
    if (--busy <= 0) Wake(busy);
  }
}

/// Reports that a worker trapped: the loop's caller traps, too.
void polyop_web_fail() {
  polyop::busy = INT32_MIN / 2;
  polyop::Wake(polyop::busy);
}
}
