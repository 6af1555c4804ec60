// SPDX-License-Identifier: Apache-2.0
// zig's allocator for WebAssembly is for one thread. All that kernels allocate comes through here, one thread at a
// time.
#include "platform/memory.h"

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

#include "platform/mutex.h"

namespace {

polyop::Mutex mutex;

void* Allocate(size_t bytes, size_t alignment) {
  // The size is of 32 bits: rounded up, a size near 4 GiB would be 0.
  if (bytes > SIZE_MAX - alignment) return nullptr;
  const std::lock_guard lock(mutex);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* AllocateOrTrap(size_t bytes, size_t alignment) {
  void* const memory = Allocate(bytes > 0 ? bytes : 1, alignment);
  if (memory == nullptr) __builtin_trap();
  return memory;
}

void Free(void* memory) {
  const std::lock_guard lock(mutex);
  std::free(memory);
}

constexpr size_t kAlignment = alignof(std::max_align_t);

}  // namespace

namespace polyop {

void* AllocateAligned(size_t bytes) { return Allocate(bytes, 64); }
void FreeAligned(void* memory) { Free(memory); }

}  // namespace polyop

void* operator new(size_t bytes) { return AllocateOrTrap(bytes, kAlignment); }
void* operator new[](size_t bytes) { return AllocateOrTrap(bytes, kAlignment); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes, kAlignment); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes, kAlignment); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return AllocateOrTrap(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
