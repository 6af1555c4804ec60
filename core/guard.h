// SPDX-License-Identifier: Apache-2.0
// The guard of functions that other languages and runtimes call: no exception may leave them.
#pragma once

#include <exception>

namespace polyop {

/// Returns f(), or failed(message) if it throws. `failed` must not throw.
///
/// Every exported function runs in it, and so does every function that a runtime calls through a pointer; their callers
/// cannot catch exceptions. create_extensions is the exception: OpenVINO expects errors as exceptions.
template <class F, class Failed>
auto Guarded(const F& f, const Failed& failed) noexcept {
  try {
    return f();
  } catch (const std::exception& e) {
    return failed(e.what());
  } catch (...) {
    return failed("an unknown exception");
  }
}

}  // namespace polyop
