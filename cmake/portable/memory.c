// The system's memcpy and the like, for libraries that zig links: its linker takes its own, which are compiled for the
// least processor, before it looks at glibc's, which know the one that they run on. Those of this file come first.
#include <stddef.h>

#ifdef __x86_64__
#define OLDEST "GLIBC_2.2.5"
#define OLDEST_MEMCPY "GLIBC_2.14"
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
