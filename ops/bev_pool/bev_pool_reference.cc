#include "families/points/bev_pool_reference.h"
#include "ops/bev_pool/bev_pool.h"

namespace polyop {
namespace {

POLYOP_REFERENCE_KERNEL(BevPool, BevPoolF64I32, PoolBevReference<BevPool, int32_t, 4>);
POLYOP_REFERENCE_KERNEL(BevPool, BevPoolF64I64, PoolBevReference<BevPool, int64_t, 4>);

}  // namespace
}  // namespace polyop
