#include "families/points/bev_pool_cuda.h"
#include "ops/bev_pool_volume/bev_pool_volume.h"

namespace polyop {
namespace {

POLYOP_CUDA_KERNEL(BevPoolVolume, BevPoolVolumeF32I32, PoolBevCuda<BevPoolVolume, float, int32_t, 5>);
POLYOP_CUDA_KERNEL(BevPoolVolume, BevPoolVolumeF16I32, PoolBevCuda<BevPoolVolume, Half, int32_t, 5>);
POLYOP_CUDA_KERNEL(BevPoolVolume, BevPoolVolumeBF16I32, PoolBevCuda<BevPoolVolume, BFloat16, int32_t, 5>);
POLYOP_CUDA_KERNEL(BevPoolVolume, BevPoolVolumeF32I64, PoolBevCuda<BevPoolVolume, float, int64_t, 5>);
POLYOP_CUDA_KERNEL(BevPoolVolume, BevPoolVolumeF16I64, PoolBevCuda<BevPoolVolume, Half, int64_t, 5>);
POLYOP_CUDA_KERNEL(BevPoolVolume, BevPoolVolumeBF16I64, PoolBevCuda<BevPoolVolume, BFloat16, int64_t, 5>);

}  // namespace
}  // namespace polyop
