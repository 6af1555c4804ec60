#include "families/rois/placed_pool.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "families/rois/placed_pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/pool_by_taps-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Calls add(pixel, weight) for each pixel of an axis that a bin's samples see. Weights of samples that follow each
// other upwards are added up, so that each of their pixels comes once.
template <class Add>
void ForEachPixel(const RoiAxis& axis, int64_t extent, const Add& add) {
  int32_t at = 0;
  float low = 0, high = 0;  // of pixels `at` and the next one
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

struct RoiOfPlacedBins {
  const PlacedRoi& roi;
  const BinStart* starts;  // of its bins
  int64_t height, width;

  double TapsBound() const { return Most(roi.y, height) * Most(roi.x, width); }
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
  // Pixels that a bin's samples can see along an axis.
  static double Most(const RoiAxis& axis, int64_t extent) {
    const double taps = 2 * static_cast<double>(axis.samples);
    return axis.bin < 0 ? taps : std::min({taps, axis.bin + 4, static_cast<double>(extent)});
  }
};

template <class T>
Status PoolRoisOfPlacedBins(const Context& context, const RoiLevel<T>& level, int64_t channels,
                            std::span<const PlacedRoi> rois, int64_t bins, const BinStart* starts, T* output) {
  const auto roi_of = [&](int64_t r) {
    return RoiOfPlacedBins{rois[static_cast<size_t>(r)], starts + r * bins, level.height, level.width};
  };
  const auto place_of = [&](int64_t r) {
    const PlacedRoi& roi = rois[static_cast<size_t>(r)];
    return RoiPlace{roi.picture, 0, PlaceOf(roi.y.start, roi.x.start), r};
  };
  return PoolByTaps<T>(context, {&level, 1}, channels, static_cast<int64_t>(rois.size()), bins, place_of, roi_of,
                       output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(PoolPlaced, PoolRoisOfPlacedBins);

template <class T>
Status PoolPlacedBins(const Context& context, const RoiLevel<T>& level, int64_t channels,
                      std::span<const PlacedRoi> rois, int64_t bins, const BinStart* starts, T* output) {
  return POLYOP_SIMD(PoolPlaced, T)(context, level, channels, rois, bins, starts, output);
}
POLYOP_FOR_FLOATS(PoolPlacedBins);
}  // namespace polyop
#endif
