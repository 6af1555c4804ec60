// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool/bev_pool.h"
#include "ops/bev/bev_pool_cuda.h"

namespace polyop {
namespace {

POLYOP_CUDA_KERNELS(BevPool, PoolBevCuda, (BevPool, float, int32_t, 4), (BevPool, Half, int32_t, 4),
                    (BevPool, BFloat16, int32_t, 4), (BevPool, float, int64_t, 4), (BevPool, Half, int64_t, 4),
                    (BevPool, BFloat16, int64_t, 4));

}  // namespace
}  // namespace polyop
