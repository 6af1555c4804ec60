#include "ops/bev_pool/bev_pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/bev_pool/bev_pool_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/points/bev_pool-inl.h"

#if HWY_ONCE
namespace polyop {
namespace {

template <class T>
using WithI32 = BevPoolTypes<BevPool, T, int32_t, 4>;
template <class T>
using WithI64 = BevPoolTypes<BevPool, T, int64_t, 4>;

}  // namespace

POLYOP_CPU_KERNEL(BevPool, BevPoolF32I32, PoolBev<WithI32<float>>);
POLYOP_CPU_KERNEL(BevPool, BevPoolF16I32, PoolBev<WithI32<Half>>);
POLYOP_CPU_KERNEL(BevPool, BevPoolBF16I32, PoolBev<WithI32<BFloat16>>);
POLYOP_CPU_KERNEL(BevPool, BevPoolF32I64, PoolBev<WithI64<float>>);
POLYOP_CPU_KERNEL(BevPool, BevPoolF16I64, PoolBev<WithI64<Half>>);
POLYOP_CPU_KERNEL(BevPool, BevPoolBF16I64, PoolBev<WithI64<BFloat16>>);
}  // namespace polyop
#endif
