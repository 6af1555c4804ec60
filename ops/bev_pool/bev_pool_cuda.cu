#include "families/points/bev_pool_cuda.h"
#include "ops/bev_pool/bev_pool.h"

namespace polyop {
namespace {

POLYOP_CUDA_KERNEL(BevPool, BevPoolF32I32, PoolBevCuda<BevPool, float, int32_t, 4>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolF16I32, PoolBevCuda<BevPool, Half, int32_t, 4>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolBF16I32, PoolBevCuda<BevPool, BFloat16, int32_t, 4>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolF32I64, PoolBevCuda<BevPool, float, int64_t, 4>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolF16I64, PoolBevCuda<BevPool, Half, int64_t, 4>);
POLYOP_CUDA_KERNEL(BevPool, BevPoolBF16I64, PoolBevCuda<BevPool, BFloat16, int64_t, 4>);

}  // namespace
}  // namespace polyop
