// SPDX-License-Identifier: Apache-2.0
#include "ops/bev/bev_pool_backward_reference.h"
#include "ops/bev/bev_pool/bev_pool_backward.h"

namespace polyop {
namespace {

POLYOP_REFERENCE_KERNELS(BevPoolBackward, PoolBevBackwardReference, (BevPoolBackward, int32_t, 4),
                         (BevPoolBackward, int64_t, 4));

}  // namespace
}  // namespace polyop
