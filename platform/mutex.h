// SPDX-License-Identifier: Apache-2.0
// Mutual exclusion. WebAssembly's modules have one thread, and its C++ library has no mutex.
#pragma once

#ifndef __wasm__
#include <mutex>
#endif

namespace polyop {

#ifdef __wasm__
class Mutex {
 public:
  void lock() {}
  void unlock() {}
};
#else
using Mutex = std::mutex;
#endif

}  // namespace polyop
