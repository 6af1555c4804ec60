// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/prroi_pool/prroi_pool_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/rois/batch_indices.h"
#include "ops/rois/pool_by_taps-inl.h"
#include "ops/rois/prroi_pool/prroi_pool.h"
#include "ops/rois/prroi_pool/prroi_pool_taps.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status PrRoiPoolCpu(const PrRoiPool& op, const Context& context, Tensor<const T, 4> features, Tensor<const T, 2> rois,
                    Tensor<T, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, features.dim(0)));
  const RoiLevel<T> level{features.data(), features.dim(2), features.dim(3), op.spatial_scale};
  const auto roi_of = [&](int64_t r) {
    return PreciseTaps{PreciseRoi::Of(op, rois.data() + 5 * r), level.height, level.width, op.pooled_width};
  };
  const auto key_of = [&](int64_t r) {
    const PreciseMiddle middle = PreciseMiddle::Of(op, rois.data() + 5 * r);
    return RoiSortKey{ImageOf(ToFloat(rois[5 * r])), 0, MortonCode(middle.y, middle.x), r};
  };
  return PoolByTaps<T>(context, {&level, 1}, features.dim(1), rois.dim(0), op.pooled_height * op.pooled_width, key_of,
                       roi_of, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(PrRoiPool, PrRoiPoolCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
