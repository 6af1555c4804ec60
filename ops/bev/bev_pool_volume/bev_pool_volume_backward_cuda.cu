// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool_backward_cuda.h"
#include "ops/bev/bev_pool_volume/bev_pool_volume_backward.h"

namespace polyop {
namespace {

POLYOP_ATOMIC_CUDA_KERNELS(BevPoolVolumeBackward, PoolBevBackwardCuda, (BevPoolVolumeBackward, float, int32_t, 5),
                           (BevPoolVolumeBackward, Half, int32_t, 5), (BevPoolVolumeBackward, BFloat16, int32_t, 5),
                           (BevPoolVolumeBackward, float, int64_t, 5), (BevPoolVolumeBackward, Half, int64_t, 5),
                           (BevPoolVolumeBackward, BFloat16, int64_t, 5));

}  // namespace
}  // namespace polyop
