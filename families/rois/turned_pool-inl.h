// Pooling of rotated regions, over one picture or the levels of a pyramid; always the average. Compiled once per
// instruction set; include it from a kernel file.
#if defined(POLYOP_FAMILIES_ROIS_TURNED_POOL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_FAMILIES_ROIS_TURNED_POOL_INL_H_
#undef POLYOP_FAMILIES_ROIS_TURNED_POOL_INL_H_
#else
#define POLYOP_FAMILIES_ROIS_TURNED_POOL_INL_H_
#endif

#include <algorithm>
#include <span>
#include <utility>

#include "families/rois/pool_by_blocks-inl.h"
#include "families/rois/roi_grid.h"
#include "kernels/cpu/channel_blocks-inl.h"
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

// The taps of rotated rois that are kept at a time, so that all blocks use them. A roi of more finds them anew for
// each block.
constexpr int64_t kRotatedTaps = 4 << 20;

// Sums the taps of a roi's bins, of which bin b's end before ends[b], in kBlocks blocks.
template <int64_t kBlocks>
void PoolRotated(const Tap* taps, const int32_t* ends, int64_t bins, const float* block, int64_t block_stride,
                 float* tile) {
  const Tap* tap = taps;
  for (int64_t bin = 0; bin < bins; ++bin) {
    BlockSum sums[kBlocks];
    for (BlockSum& sum : sums) sum.Fill(0);
    for (const Tap* const end = taps + ends[bin]; tap < end; ++tap) {
      const float* const pixel = block + static_cast<int64_t>(tap->index) * kBlockChannels;
      for (int64_t b = 0; b < kBlocks; ++b) sums[b].Add(pixel + b * block_stride, tap->weight);
    }
    for (int64_t b = 0; b < kBlocks; ++b) sums[b].Store(1.0f, tile + (b * bins + bin) * kBlockChannels);
  }
}

inline void PoolRotated(const RotatedRoi& roi, int64_t bins, const float* block, float* tile) {
  for (int64_t bin = 0; bin < bins; ++bin) {
    BlockSum sum;
    sum.Fill(0);
    roi.ForEachTap(bin, [&](const Tap& tap) HWY_ATTR {
      sum.Add(block + static_cast<int64_t>(tap.index) * kBlockChannels, tap.weight);
    });
    sum.Store(1.0f, tile + bin * kBlockChannels);
  }
}

/// As PoolRois, for turned boxes; the average of bilinear samples.
template <class T>
Status PoolRotatedRois(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                       const TurnedRois<T>& rois, const RoiPooling& how, T* output) {
  const int64_t bins = how.rows * how.columns;
  if (count * channels * bins == 0) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(CheckLevels(levels));
  const Scratch<RoiPlace> order = context.Allocate<RoiPlace>(count);
  if (!order) return Internal("out of memory: ", count, " rois");
  const auto roi_of = [&](int64_t r) {
    const RoiLevel<T>& level = levels[static_cast<size_t>(rois.Level(r))];
    return RotatedRoi::Make(rois.Box(r), level.height, level.width, level.scale, how);
  };
  const auto room_for = [&](int64_t r) {  // in taps, at most kRotatedTaps + 1
    const double bound = roi_of(r).TapsBound() * static_cast<double>(bins);
    return static_cast<int64_t>(std::min(bound, static_cast<double>(kRotatedTaps + 1)));
  };
  int64_t room = 0;
  for (int64_t r = 0; r < count; ++r) {
    const TurnedBox box = rois.Box(r);
    const double scale = levels[static_cast<size_t>(rois.Level(r))].scale;
    order[r] = {static_cast<int64_t>(rois.Picture(r)), rois.Level(r), PlaceOf(box.y * scale, box.x * scale), r};
    room = std::min(kRotatedTaps, room + room_for(r));
  }
  std::sort(order.data(), order.data() + count);
  const Scratch<Tap> taps = context.Allocate<Tap>(room);
  const Scratch<int32_t> ends = context.Allocate<int32_t>(count * bins);
  const Scratch<int64_t> starts = context.Allocate<int64_t>(count);
  if (!taps || !ends || !starts) return Internal("out of memory: taps of ", count, " rois");

  // As many rois as there is room for, unless they are there from the blocks before.
  int64_t ready_first = 0, ready_last = 0;
  const auto prepare = [&](int64_t first, int64_t last) {
    if (first == ready_first && ready_last > first) return ready_last;
    int64_t used = 0, stop = first;
    for (; stop < last; ++stop) {
      const int64_t needed = room_for(order[stop].roi);
      const bool alone = needed > kRotatedTaps;  // -1: has no place
      if (!alone && used + needed > room) break;
      starts[stop] = alone ? -1 : used;
      used += alone ? 0 : needed;
    }
    context.ParallelFor(stop - first, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = first + begin; i < first + end; ++i) {
        if (starts[i] < 0) continue;
        const RotatedRoi roi = roi_of(order[i].roi);
        Tap* const to = taps.data() + starts[i];
        int32_t found = 0;
        for (int64_t bin = 0; bin < bins; ++bin) {
          roi.ForEachTap(bin, [&](const Tap& tap) { to[found++] = tap; });
          ends[i * bins + bin] = found;
        }
      }
    });
    ready_first = first;
    return ready_last = stop;
  };
  const auto pool = [&](int64_t i, const float* pixels, int64_t stride, int64_t together, float* tile) {
    if (starts[i] < 0) {
      for (int64_t b = 0; b < together; ++b) {
        PoolRotated(roi_of(order[i].roi), bins, pixels + b * stride, tile + b * bins * kBlockChannels);
      }
      return;
    }
    (together == 1 ? PoolRotated<1> : PoolRotated<kPooledBlocks>)(taps.data() + starts[i], ends.data() + i * bins, bins,
                                                                  pixels, stride, tile);
  };
  return PoolByBlocks(context, levels, channels, {order.data(), static_cast<size_t>(count)}, bins, true, prepare, pool,
                      output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
