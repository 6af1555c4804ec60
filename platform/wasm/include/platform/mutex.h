// SPDX-License-Identifier: Apache-2.0
// Mutual exclusion, in place of platform/mutex.h: zig's C++ library for WebAssembly has no mutex, and the main thread
// of a page may not sleep. What it protects takes less than a microsecond.
#pragma once

#include <atomic>

namespace polyop {

class Mutex {
 public:
  void lock() {
    while (is_locked_.exchange(true, std::memory_order_acquire)) {
    }
  }
  void unlock() { is_locked_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_locked_ = false;
};

}  // namespace polyop
