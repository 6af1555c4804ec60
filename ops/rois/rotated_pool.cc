// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/rotated_pool.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/rotated_pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/rois/pool_by_taps-inl.h"
#include "ops/rois/scatter_by_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// A rotated RoI on its level: its grid and the part of it that is inside.
struct RotatedRoi {
  RotatedGrid grid;
  double u_range[2], v_range[2];
  int64_t height, width, columns;
  float scale;  // 1 / samples per bin

  static RotatedRoi Make(const RotatedRoiBox& box, int64_t height, int64_t width, double scale, const RoiPooling& how) {
    RotatedRoi roi{RotatedGrid::Make(box, scale, how), {}, {}, height, width, how.columns, 0};
    const double samples = static_cast<double>(roi.grid.u.samples) * static_cast<double>(roi.grid.v.samples);
    roi.scale = samples > 0 ? static_cast<float>(1 / samples) : 0;
    roi.grid.Bounds(height, width, roi.u_range, roi.v_range);
    return roi;
  }
  /// Returns the maximum number of taps per bin.
  double TapsBound() const { return 4 * static_cast<double>(grid.u.samples) * static_cast<double>(grid.v.samples); }

  /// Calls add(tap) for every pixel of every sample of a bin.
  template <class Add>
  void ForEachTap(int64_t bin, const Add& add) const {
    int64_t v_begin = 0, v_end = 0, u_begin = 0, u_end = 0;
    grid.v.Inside(bin / columns, v_range[0], v_range[1], &v_begin, &v_end);
    grid.u.Inside(bin % columns, u_range[0], u_range[1], &u_begin, &u_end);
    for (int64_t iv = v_begin; iv < v_end; ++iv) {
      for (int64_t iu = u_begin; iu < u_end; ++iu) {
        const double u_at = grid.u.Position(bin % columns, iu), v_at = grid.v.Position(bin / columns, iv);
        const LinearTaps y = RoiTaps(grid.Y(u_at, v_at), height), x = RoiTaps(grid.X(u_at, v_at), width);
        if (!y.inside || !x.inside) continue;
        for (const auto& [row, row_weight] : {std::pair{y.low, y.low_weight}, {y.high, y.high_weight}}) {
          const int32_t first = row * static_cast<int32_t>(width);
          if (row_weight != 0 && x.low_weight != 0) add(Tap{first + x.low, row_weight * x.low_weight * scale});
          if (row_weight != 0 && x.high_weight != 0) add(Tap{first + x.high, row_weight * x.high_weight * scale});
        }
      }
    }
  }
};

template <class T>
RoiSortKey KeyOf(std::span<const RoiLevel<T>> levels, const RotatedRois<T>& rois, int64_t r) {
  const RotatedRoiBox box = rois.Box(r);
  const double scale = levels[static_cast<size_t>(rois.Level(r))].scale;
  return {rois.Image(r), rois.Level(r), MortonCode(box.y * scale, box.x * scale), r};
}

template <class T>
RotatedRoi RoiOf(std::span<const RoiLevel<T>> levels, const RotatedRois<T>& rois, const RoiPooling& how, int64_t r) {
  const RoiLevel<T>& level = levels[static_cast<size_t>(rois.Level(r))];
  return RotatedRoi::Make(rois.Box(r), level.height, level.width, level.scale, how);
}

template <class T>
Status PoolRotatedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                       const RotatedRois<T>& rois, const RoiPooling& how, T* output) {
  const auto key_of = [&](int64_t r) { return KeyOf(levels, rois, r); };
  const auto roi_of = [&](int64_t r) { return RoiOf(levels, rois, how, r); };
  return PoolByTaps(context, levels, channels, count, how.rows * how.columns, key_of, roi_of, output);
}

template <class T, class Grad>
Status ScatterLevels(const Context& context, std::span<const RoiLevel<T>> levels, int64_t images, int64_t channels,
                     int64_t count, const RotatedRois<T>& rois, const RoiPooling& how, const Grad* grad_output,
                     T* grad_input) {
  const Scratch<int64_t> of_level = context.Allocate<int64_t>(count);
  if (!of_level) return Internal("out of memory: ", count, " rois");
  const auto key_of = [&](int64_t i) { return KeyOf(levels, rois, of_level[i]); };
  const auto roi_of = [&](int64_t r) { return RoiOf(levels, rois, how, r); };
  for (size_t l = 0; l < levels.size(); ++l) {
    int64_t found = 0;
    for (int64_t r = 0; r < count; ++r) {
      if (rois.Level(r) == static_cast<int32_t>(l)) of_level[found++] = r;
    }
    POLYOP_RETURN_IF_ERROR(ScatterByTaps(context, levels[l], images, channels, found, how.rows * how.columns, key_of,
                                         roi_of, grad_output, grad_input));
    grad_input += images * channels * levels[l].height * levels[l].width;
  }
  return Status::Ok();
}

// Dispatch tables take templates with one argument.
template <class T>
Status ScatterRotatedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t images, int64_t channels,
                          int64_t count, const RotatedRois<T>& rois, const RoiPooling& how, const T* grad_output,
                          T* grad_input) {
  return ScatterLevels<T, T>(context, levels, images, channels, count, rois, how, grad_output, grad_input);
}
template <class T>
Status ScatterRotatedRoisOfF32(const Context& context, const RoiLevel<T>& level, int64_t images, int64_t channels,
                               int64_t count, const RotatedRois<T>& rois, const RoiPooling& how,
                               const float* grad_output, T* grad_input) {
  return ScatterLevels<T, float>(context, {&level, 1}, images, channels, count, rois, how, grad_output, grad_input);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(PoolRotated, PoolRotatedRois);
POLYOP_SIMD_TABLES(ScatterRotated, ScatterRotatedRois);
POLYOP_SIMD_TABLES(ScatterRotatedOfF32, ScatterRotatedRoisOfF32);

template <class T>
Status PoolRotatedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                       const RotatedRois<T>& rois, const RoiPooling& how, T* output) {
  return POLYOP_SIMD(PoolRotated, T)(context, levels, channels, count, rois, how, output);
}
POLYOP_FOR_FLOATS(PoolRotatedRois);

template <class T>
Status PoolRotatedRoisBackward(const Context& context, std::span<const RoiLevel<T>> levels, int64_t images,
                               int64_t channels, int64_t count, const RotatedRois<T>& rois, const RoiPooling& how,
                               const T* grad_output, T* grad_input) {
  return POLYOP_SIMD(ScatterRotated, T)(context, levels, images, channels, count, rois, how, grad_output, grad_input);
}
POLYOP_FOR_FLOATS(PoolRotatedRoisBackward);

template <class T>
Status PoolRotatedRoisBackwardOfF32(const Context& context, const RoiLevel<T>& input, int64_t images, int64_t channels,
                                    int64_t count, const RotatedRois<T>& rois, const RoiPooling& how,
                                    const float* grad_output, T* grad_input) {
  return POLYOP_SIMD(ScatterRotatedOfF32, T)(context, input, images, channels, count, rois, how, grad_output,
                                             grad_input);
}
POLYOP_FOR_FLOATS(PoolRotatedRoisBackwardOfF32);
}  // namespace polyop
#endif
