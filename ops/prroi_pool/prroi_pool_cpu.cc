#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/prroi_pool/prroi_pool_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/pool_by_taps-inl.h"
#include "families/rois/rois.h"
#include "kernels/cpu/simd.h"
#include "ops/prroi_pool/prroi_pool.h"
#include "ops/prroi_pool/prroi_pool_bins.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

struct PreciseTaps {
  PreciseRoi roi;
  int64_t height, width, columns;

  double TapsBound() const {
    return std::min(roi.y.size + 4, static_cast<double>(height)) * std::min(roi.x.size + 4, static_cast<double>(width));
  }
  template <class Add>
  void ForEachTap(int64_t bin, const Add& add) const {
    const PreciseBin down = roi.y.Bin(bin / columns, height), across = roi.x.Bin(bin % columns, width);
    for (int64_t row = down.first; row < down.last; ++row) {
      const double row_weight = down.WeightOf(row);
      for (int64_t column = across.first; column < across.last; ++column) {
        const auto weight = static_cast<float>(row_weight * across.WeightOf(column));
        if (weight != 0) add(Tap{static_cast<int32_t>(row * width + column), weight});
      }
    }
  }
};

template <class T>
Status PrRoiPoolCpu(const PrRoiPool& op, const Context& context, Tensor<const T, 4> features, Tensor<const T, 2> rois,
                    Tensor<T, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, features.dim(0)));
  const RoiLevel<T> level{features.data(), features.dim(2), features.dim(3), op.spatial_scale};
  const auto roi_of = [&](int64_t r) {
    return PreciseTaps{PreciseRoi::Of(op, rois.data() + 5 * r), level.height, level.width, op.pooled_width};
  };
  const auto place_of = [&](int64_t r) {
    const T* const row = rois.data() + 5 * r;
    const auto middle = [&](T low, T high) {
      return (static_cast<double>(ToFloat(low)) + ToFloat(high)) / 2 * op.spatial_scale;
    };
    return RoiPlace{static_cast<int64_t>(ToFloat(row[0])), 0, PlaceOf(middle(row[2], row[4]), middle(row[1], row[3])),
                    r};
  };
  return PoolByTaps<T>(context, {&level, 1}, features.dim(1), rois.dim(0), op.pooled_height * op.pooled_width, place_of,
                       roi_of, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(PrRoiPool, PrRoiPoolF32, PrRoiPoolCpu<float>);
POLYOP_CPU_KERNEL(PrRoiPool, PrRoiPoolF16, PrRoiPoolCpu<Half>);
POLYOP_CPU_KERNEL(PrRoiPool, PrRoiPoolBF16, PrRoiPoolCpu<BFloat16>);
}  // namespace polyop
#endif
