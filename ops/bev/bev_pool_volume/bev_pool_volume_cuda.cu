// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool_cuda.h"
#include "ops/bev/bev_pool_volume/bev_pool_volume.h"

namespace polyop {
namespace {

POLYOP_CUDA_KERNELS(BevPoolVolume, PoolBevCuda, (BevPoolVolume, float, int32_t, 5), (BevPoolVolume, Half, int32_t, 5),
                    (BevPoolVolume, BFloat16, int32_t, 5), (BevPoolVolume, float, int64_t, 5),
                    (BevPoolVolume, Half, int64_t, 5), (BevPoolVolume, BFloat16, int64_t, 5));

}  // namespace
}  // namespace polyop
