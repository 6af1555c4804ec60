// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool_reference.h"
#include "ops/bev/bev_pool_volume/bev_pool_volume.h"

namespace polyop {
namespace {

POLYOP_REFERENCE_KERNELS(BevPoolVolume, PoolBevReference, (BevPoolVolume, int32_t, 5), (BevPoolVolume, int64_t, 5));

}  // namespace
}  // namespace polyop
