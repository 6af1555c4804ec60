#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform_roi_pool/deform_roi_pool_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/pool_by_taps-inl.h"
#include "families/rois/rois.h"
#include "kernels/cpu/simd.h"
#include "ops/deform_roi_pool/deform_roi_pool.h"
#include "ops/deform_roi_pool/deform_roi_pool_bins.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Calls add(pixel, weight) for each pixel of an axis that a bin's samples see. Weights of samples that follow each
// other upwards are added up, so that each of their pixels comes once.
template <class Add>
void ForEachPixel(const RoiAxis& axis, int64_t bin, int64_t extent, const Add& add) {
  int32_t at = 0;
  float low = 0, high = 0;  // of pixels `at` and the next one
  const auto finish = [&](float weight, int32_t pixel) {
    if (weight != 0) add(pixel, weight);
  };
  int64_t begin = 0, end = 0;
  axis.Inside(bin, extent, &begin, &end);
  for (int64_t s = begin; s < end; ++s) {
    const LinearTaps taps = RoiTaps(axis.Position(bin, s), extent);
    if (!taps.inside) continue;
    if (taps.low != at) {
      finish(low, at);
      low = 0;
      if (taps.low == at + 1) {
        low = high;
      } else {
        finish(high, at + 1);
      }
      high = 0;
      at = taps.low;
    }
    low += taps.low_weight;
    high += taps.high_weight;
  }
  finish(low, at);
  finish(high, at + 1);
}

template <class T>
struct MovedRoi {
  MovedBins<T> bins;
  int64_t height, width;

  double TapsBound() const { return Most(bins.y, height) * Most(bins.x, width); }
  template <class Add>
  void ForEachTap(int64_t bin, const Add& add) const {
    RoiAxis down, across;
    bins.AxesOf(bin, &down, &across);
    if (down.samples == 0 || across.samples == 0) return;
    const auto scale = static_cast<float>(1 / bins.samples());
    ForEachPixel(down, bin / bins.columns, height, [&](int32_t row, float row_weight) {
      ForEachPixel(across, bin % bins.columns, width, [&](int32_t column, float weight) {
        add(Tap{row * static_cast<int32_t>(width) + column, row_weight * weight * scale});
      });
    });
  }

 private:
  // Pixels that a bin's samples can see along an axis.
  static double Most(const RoiAxis& axis, int64_t extent) {
    const double taps = 2 * static_cast<double>(axis.samples);
    return axis.bin < 0 ? taps : std::min({taps, axis.bin + 4, static_cast<double>(extent)});
  }
};

template <class T>
Status DeformRoiPoolCpu(const DeformRoiPool& op, const Context& context, Tensor<const T, 4> input,
                        Tensor<const T, 2> rois, std::optional<Tensor<const T, 4>> offset, Tensor<T, 4> output) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const RoiLevel<T> level{input.data(), input.dim(2), input.dim(3), op.spatial_scale};
  const T* const offsets = offset ? offset->data() : nullptr;
  const auto roi_of = [&](int64_t r) {
    return MovedRoi<T>{MovedBins<T>::Make(op, rois.data() + 5 * r, offsets, r), level.height, level.width};
  };
  const auto place_of = [&](int64_t r) {
    const MovedRoi<T> roi = roi_of(r);
    const auto middle = [](const RoiAxis& axis, int64_t bins) {
      return axis.start + axis.bin * static_cast<double>(bins) / 2;
    };
    return RoiPlace{static_cast<int64_t>(ToFloat(rois[5 * r])), 0,
                    PlaceOf(middle(roi.bins.y, op.pooled_height), middle(roi.bins.x, op.pooled_width)), r};
  };
  return PoolByTaps<T>(context, {&level, 1}, input.dim(1), rois.dim(0), op.pooled_height * op.pooled_width, place_of,
                       roi_of, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(DeformRoiPool, DeformRoiPoolF32, DeformRoiPoolCpu<float>);
POLYOP_CPU_KERNEL(DeformRoiPool, DeformRoiPoolF16, DeformRoiPoolCpu<Half>);
POLYOP_CPU_KERNEL(DeformRoiPool, DeformRoiPoolBF16, DeformRoiPoolCpu<BFloat16>);
}  // namespace polyop
#endif
