// SPDX-License-Identifier: Apache-2.0
// Calls the system's memcpy, memmove, memset and memcmp in libraries that zig links. zig's linker prefers its own
// versions, which are compiled for the minimum processor, to glibc's, which are optimised at run time. The definitions
// of this file have priority over both.
#include <stddef.h>

#ifdef __x86_64__
#define OLDEST "GLIBC_2.2.5"
#define OLDEST_MEMCPY "GLIBC_2.14"
#elif defined(__riscv)
#define OLDEST "GLIBC_2.27"
#define OLDEST_MEMCPY OLDEST
#else
#define OLDEST "GLIBC_2.17"
#define OLDEST_MEMCPY OLDEST
#endif
#define HIDDEN __attribute__((visibility("hidden")))

__asm__(".symver system_memcpy, memcpy@" OLDEST_MEMCPY);
__asm__(".symver system_memmove, memmove@" OLDEST);
__asm__(".symver system_memset, memset@" OLDEST);
__asm__(".symver system_memcmp, memcmp@" OLDEST);
void* system_memcpy(void* restrict to, const void* restrict from, size_t size);
void* system_memmove(void* to, const void* from, size_t size);
void* system_memset(void* to, int value, size_t size);
int system_memcmp(const void* a, const void* b, size_t size);

HIDDEN void* memcpy(void* restrict to, const void* restrict from, size_t size) { return system_memcpy(to, from, size); }
HIDDEN void* memmove(void* to, const void* from, size_t size) { return system_memmove(to, from, size); }
HIDDEN void* memset(void* to, int value, size_t size) { return system_memset(to, value, size); }
HIDDEN int memcmp(const void* a, const void* b, size_t size) { return system_memcmp(a, b, size); }
