// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool_volume/bev_pool_volume_backward.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/bev/bev_pool_volume/bev_pool_volume_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "ops/bev/bev_pool_backward-inl.h"

#if HWY_ONCE
namespace polyop {
namespace {

template <class T>
using WithI32 = BevPoolTypes<BevPoolVolumeBackward, T, int32_t, 5>;
template <class T>
using WithI64 = BevPoolTypes<BevPoolVolumeBackward, T, int64_t, 5>;

}  // namespace

POLYOP_CPU_KERNELS(BevPoolVolumeBackward, PoolBevBackward, WithI32<float>, WithI32<Half>, WithI32<BFloat16>,
                   WithI64<float>, WithI64<Half>, WithI64<BFloat16>);
}  // namespace polyop
#endif
