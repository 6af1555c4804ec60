#include "ops/bev_pool_volume/bev_pool_volume.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/bev_pool_volume/bev_pool_volume_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/points/bev_pool-inl.h"

#if HWY_ONCE
namespace polyop {
namespace {

template <class T>
using WithI32 = BevPoolTypes<BevPoolVolume, T, int32_t, 5>;
template <class T>
using WithI64 = BevPoolTypes<BevPoolVolume, T, int64_t, 5>;

}  // namespace

POLYOP_CPU_KERNEL(BevPoolVolume, BevPoolVolumeF32I32, PoolBev<WithI32<float>>);
POLYOP_CPU_KERNEL(BevPoolVolume, BevPoolVolumeF16I32, PoolBev<WithI32<Half>>);
POLYOP_CPU_KERNEL(BevPoolVolume, BevPoolVolumeBF16I32, PoolBev<WithI32<BFloat16>>);
POLYOP_CPU_KERNEL(BevPoolVolume, BevPoolVolumeF32I64, PoolBev<WithI64<float>>);
POLYOP_CPU_KERNEL(BevPoolVolume, BevPoolVolumeF16I64, PoolBev<WithI64<Half>>);
POLYOP_CPU_KERNEL(BevPoolVolume, BevPoolVolumeBF16I64, PoolBev<WithI64<BFloat16>>);
}  // namespace polyop
#endif
