#include "families/rois/free_bins_pool.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "families/rois/free_bins_pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/pool_by_taps-inl.h"
#include "families/rois/scatter_by_taps-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Calls add(pixel, weight) for each pixel of an axis that a bin's samples use. Weights of samples at ascending
// positions are accumulated, so that each pixel is visited once.
template <class Add>
void ForEachPixel(const RoiAxis& axis, int64_t extent, const Add& add) {
  int32_t at = 0;
  float low = 0, high = 0;  // weights of pixels `at` and `at` + 1
  const auto finish = [&](float weight, int32_t pixel) {
    if (weight != 0) add(pixel, weight);
  };
  int64_t begin = 0, end = 0;
  axis.Inside(0, extent, &begin, &end);
  for (int64_t s = begin; s < end; ++s) {
    const LinearTaps taps = RoiTaps(axis.Position(0, s), extent);
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
