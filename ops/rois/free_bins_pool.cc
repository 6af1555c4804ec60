// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/free_bins_pool.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/free_bins_pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/rois/pool_by_taps-inl.h"
#include "ops/rois/scatter_by_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

#include "ops/rois/axis_pixels-inl.h"

struct FreeBinsTaps {
  const FreeBinsRoi& roi;
  const BinStart* starts;  // one per bin
  int64_t height, width;

  double TapsBound() const { return MaxPixels(roi.y, height) * MaxPixels(roi.x, width); }
  template <class Add>
  void ForEachTap(int64_t bin, const Add& add) const {
    RoiAxis down = roi.y, across = roi.x;
    down.start = starts[bin].y;
    across.start = starts[bin].x;
    const double samples = static_cast<double>(down.samples) * static_cast<double>(across.samples);
    if (samples == 0 || !std::isfinite(down.start) || !std::isfinite(across.start)) return;
    const auto scale = static_cast<float>(1 / samples);
    ForEachPixel(down, height, [&](int32_t row, float row_weight) {
      ForEachPixel(across, width, [&](int32_t column, float weight) {
        add(Tap{row * static_cast<int32_t>(width) + column, row_weight * weight * scale});
      });
    });
  }

 private:
  // Returns the maximum number of pixels of a bin along an axis.
  static double MaxPixels(const RoiAxis& axis, int64_t extent) {
    const double taps = 2 * static_cast<double>(axis.samples);
    return axis.bin < 0 ? taps : std::min({taps, axis.bin + 4, static_cast<double>(extent)});
  }
};

RoiSortKey KeyOf(std::span<const FreeBinsRoi> rois, int64_t r) {
  const FreeBinsRoi& roi = rois[static_cast<size_t>(r)];
  return {roi.image, 0, MortonCode(roi.y.start, roi.x.start), r};
}

template <class T>
Status PoolFreeBinsOfRois(const Context& context, const RoiLevel<T>& level, int64_t channels,
                          std::span<const FreeBinsRoi> rois, int64_t bins, const BinStart* starts, T* output) {
  const auto key_of = [&](int64_t r) { return KeyOf(rois, r); };
  const auto roi_of = [&](int64_t r) {
    return FreeBinsTaps{rois[static_cast<size_t>(r)], starts + r * bins, level.height, level.width};
  };
  return PoolByTaps<T>(context, {&level, 1}, channels, static_cast<int64_t>(rois.size()), bins, key_of, roi_of, output);
}

template <class T>
Status ScatterFreeBinsOfRois(const Context& context, const RoiLevel<T>& level, int64_t images, int64_t channels,
                             std::span<const FreeBinsRoi> rois, int64_t bins, const BinStart* starts,
                             const T* grad_output, T* grad_input) {
  const auto key_of = [&](int64_t r) { return KeyOf(rois, r); };
  const auto roi_of = [&](int64_t r) {
    return FreeBinsTaps{rois[static_cast<size_t>(r)], starts + r * bins, level.height, level.width};
  };
  return ScatterByTaps(context, level, images, channels, static_cast<int64_t>(rois.size()), bins, key_of, roi_of,
                       grad_output, grad_input);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(FreeBinsPool, PoolFreeBinsOfRois);
POLYOP_SIMD_TABLES(FreeBinsScatter, ScatterFreeBinsOfRois);

template <class T>
Status PoolFreeBins(const Context& context, const RoiLevel<T>& level, int64_t channels,
                    std::span<const FreeBinsRoi> rois, int64_t bins, const BinStart* starts, T* output) {
  return POLYOP_SIMD(FreeBinsPool, T)(context, level, channels, rois, bins, starts, output);
}
POLYOP_FOR_FLOATS(PoolFreeBins);

template <class T>
Status PoolFreeBinsBackward(const Context& context, const RoiLevel<T>& level, int64_t images, int64_t channels,
                            std::span<const FreeBinsRoi> rois, int64_t bins, const BinStart* starts,
                            const T* grad_output, T* grad_input) {
  return POLYOP_SIMD(FreeBinsScatter, T)(context, level, images, channels, rois, bins, starts, grad_output, grad_input);
}
POLYOP_FOR_FLOATS(PoolFreeBinsBackward);
}  // namespace polyop
#endif
