// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool/bev_pool_backward.h"
#include "ops/bev/bev_pool_backward_cuda.h"

namespace polyop {
namespace {

POLYOP_ATOMIC_CUDA_KERNELS(BevPoolBackward, PoolBevBackwardCuda, (BevPoolBackward, float, int32_t, 4),
                           (BevPoolBackward, Half, int32_t, 4), (BevPoolBackward, BFloat16, int32_t, 4),
                           (BevPoolBackward, float, int64_t, 4), (BevPoolBackward, Half, int64_t, 4),
                           (BevPoolBackward, BFloat16, int64_t, 4));

}  // namespace
}  // namespace polyop
