// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool_backward_reference.h"
#include "ops/bev/bev_pool_volume/bev_pool_volume_backward.h"

namespace polyop {
namespace {

POLYOP_REFERENCE_KERNELS(BevPoolVolumeBackward, PoolBevBackwardReference, (BevPoolVolumeBackward, int32_t, 5),
                         (BevPoolVolumeBackward, int64_t, 5));

}  // namespace
}  // namespace polyop
