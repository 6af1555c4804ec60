// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool_reference.h"
#include "ops/bev/bev_pool/bev_pool.h"

namespace polyop {
namespace {

POLYOP_REFERENCE_KERNELS(BevPool, PoolBevReference, (BevPool, int32_t, 4), (BevPool, int64_t, 4));

}  // namespace
}  // namespace polyop
