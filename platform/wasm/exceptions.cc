// SPDX-License-Identifier: Apache-2.0
// Functions of the C++ runtime that zig's for WebAssembly lacks. It has no exceptions: a throw, which in this project
// is only the standard library's when memory is missing, ends the call as a trap, and JavaScript makes an error of it.
#include <cstddef>
#include <typeinfo>

extern "C" {

void* __cxa_allocate_exception(size_t) noexcept { __builtin_trap(); }
[[noreturn]] void __cxa_throw(void*, std::type_info*, void (*)(void*)) { __builtin_trap(); }

// The only thread does not end.
int __cxa_thread_atexit(void (*)(void*), void*, void*) noexcept { return 0; }
}
