#include "families/rois/turned_pool.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "families/rois/turned_pool.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/rois/pool_by_taps-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// A rotated roi on its level: its grid and the part of it that lies inside.
struct RotatedRoi {
  TurnedGrid grid;
  double u_range[2], v_range[2];
  int64_t height, width, columns;
  float scale;  // 1 / samples of a bin

  static RotatedRoi Make(const TurnedBox& box, int64_t height, int64_t width, double scale, const RoiPooling& how) {
    RotatedRoi roi{TurnedGrid::Make(box, scale, how), {}, {}, height, width, how.columns, 0};
    const double samples = static_cast<double>(roi.grid.u.samples) * static_cast<double>(roi.grid.v.samples);
    roi.scale = samples > 0 ? static_cast<float>(1 / samples) : 0;
    roi.grid.Bounds(height, width, roi.u_range, roi.v_range);
    return roi;
  }
  /// Most taps that a bin can have.
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
Status PoolTurnedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                      const TurnedRois<T>& rois, const RoiPooling& how, T* output) {
  const auto place_of = [&](int64_t r) {
    const TurnedBox box = rois.Box(r);
    const double scale = levels[static_cast<size_t>(rois.Level(r))].scale;
    return RoiPlace{static_cast<int64_t>(rois.Picture(r)), rois.Level(r), PlaceOf(box.y * scale, box.x * scale), r};
  };
  const auto roi_of = [&](int64_t r) {
    const RoiLevel<T>& level = levels[static_cast<size_t>(rois.Level(r))];
    return RotatedRoi::Make(rois.Box(r), level.height, level.width, level.scale, how);
  };
  return PoolByTaps(context, levels, channels, count, how.rows * how.columns, place_of, roi_of, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(PoolTurned, PoolTurnedRois);

template <class T>
Status PoolRotatedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                       const TurnedRois<T>& rois, const RoiPooling& how, T* output) {
  return POLYOP_SIMD(PoolTurned, T)(context, levels, channels, count, rois, how, output);
}
POLYOP_FOR_FLOATS(PoolRotatedRois);
}  // namespace polyop
#endif
