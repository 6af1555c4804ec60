#include "families/points/bev_pool_reference.h"
#include "ops/bev_pool_volume/bev_pool_volume.h"

namespace polyop {
namespace {

POLYOP_REFERENCE_KERNEL(BevPoolVolume, BevPoolVolumeF64I32, PoolBevReference<BevPoolVolume, int32_t, 5>);
POLYOP_REFERENCE_KERNEL(BevPoolVolume, BevPoolVolumeF64I64, PoolBevReference<BevPoolVolume, int64_t, 5>);

}  // namespace
}  // namespace polyop
