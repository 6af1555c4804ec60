// SPDX-License-Identifier: Apache-2.0
// Pooling of RoIs whose bins are arbitrary sums of weighted pixels (taps), which are found once for all blocks of
// channels. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_ROIS_POOL_BY_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_ROIS_POOL_BY_TAPS_INL_H_
#undef POLYOP_OPS_ROIS_POOL_BY_TAPS_INL_H_
#else
#define POLYOP_OPS_ROIS_POOL_BY_TAPS_INL_H_
#endif

#include <algorithm>
#include <span>

#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rois/pool_by_blocks-inl.h"
#include "ops/rois/roi_grid.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Maximum number of taps that are kept for all blocks. A RoI with more taps computes them again for each block.
constexpr int64_t kMaxKeptTaps = 4 << 20;

// Taps are summed in runs of this length, then the runs are summed, so that a bin of 40,000 taps has the rounding error
// of some hundreds.
constexpr int64_t kRun = 512;

HWY_INLINE void StoreRun(BlockSum run, bool first, float* sum) {
  if (!first) {
    BlockSum before;
    before.Load(sum);
    run.Add(before, 1.0f);
  }
  run.Store(1.0f, sum);
}

// Sums the taps of a RoI's bins in kBlocks blocks. The taps of bin b end at ends[b].
template <int64_t kBlocks, class Element>
void SumKeptTaps(const Tap* taps, const int32_t* ends, int64_t bins, const Element* block, int64_t block_stride,
                 float* tile) {
  const Tap* tap = taps;
  for (int64_t bin = 0; bin < bins; ++bin) {
    const Tap *const begin = tap, *const end = taps + ends[bin];
    do {
      const Tap *const from = tap, *const stop = tap + std::min<int64_t>(end - tap, kRun);
      BlockSum sums[kBlocks];
      for (BlockSum& sum : sums) sum.Fill(0);
      for (; tap < stop; ++tap) {
        const Element* const pixel = block + static_cast<int64_t>(tap->index) * kBlockChannels;
        for (int64_t b = 0; b < kBlocks; ++b) sums[b].Add(pixel + b * block_stride, tap->weight);
      }
      for (int64_t b = 0; b < kBlocks; ++b) StoreRun(sums[b], from == begin, tile + (b * bins + bin) * kBlockChannels);
    } while (tap < end);
  }
}

template <class Roi, class Element>
void SumTapsAsFound(const Roi& roi, int64_t bins, const Element* block, float* tile) {
  for (int64_t bin = 0; bin < bins; ++bin) {
    float* const to = tile + bin * kBlockChannels;
    BlockSum run;
    run.Fill(0);
    run.Store(1.0f, to);
    int64_t taps = 0;
    roi.ForEachTap(bin, [&](const Tap& tap) HWY_ATTR {
      run.Add(block + static_cast<int64_t>(tap.index) * kBlockChannels, tap.weight);
      if (++taps % kRun != 0) return;
      StoreRun(run, false, to);
      run.Fill(0);
    });
    StoreRun(run, false, to);
  }
}

/// Pools `count` RoIs to output [count, channels, bins]. key_of(r) returns the RoiSortKey of RoI r. roi_of(r) returns
/// an object with
///  - TapsBound(), the maximum number of taps per bin;
///  - ForEachTap(bin, add), which calls add(Tap) for each tap of a bin.
template <class T, class KeyOf, class RoiOf>
Status PoolByTaps(const Context& context, std::span<const RoiLevel<T>> levels, int64_t channels, int64_t count,
                  int64_t bins, const KeyOf& key_of, const RoiOf& roi_of, T* output) {
  if (count * channels * bins == 0) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(CheckLevels(levels));
  const Scratch<RoiSortKey> order = context.Allocate<RoiSortKey>(count);
  if (!order) return Internal("out of memory: ", count, " rois");
  const auto room_for = [&](int64_t r) {  // in taps, at most kMaxKeptTaps + 1
    const double bound = roi_of(r).TapsBound() * static_cast<double>(bins);
    return static_cast<int64_t>(std::min(bound, static_cast<double>(kMaxKeptTaps + 1)));
  };
  int64_t room = 0;
  for (int64_t r = 0; r < count; ++r) {
    order[r] = key_of(r);
    room = std::min(kMaxKeptTaps, room + room_for(r));
  }
  std::sort(order.data(), order.data() + count);
  const Scratch<Tap> taps = context.Allocate<Tap>(room);
  const Scratch<int32_t> ends = context.Allocate<int32_t>(count * bins);
  const Scratch<int64_t> starts = context.Allocate<int64_t>(count);
  if (!taps || !ends || !starts) return Internal("out of memory: taps of ", count, " rois");

  // Finds the taps of as many RoIs as there is room for, unless they are kept from the previous blocks.
  int64_t ready_first = 0, ready_last = 0;
  const auto prepare = [&](int64_t first, int64_t last) {
    if (first == ready_first && ready_last > first) return ready_last;
    int64_t used = 0, stop = first;
    for (; stop < last; ++stop) {
      const int64_t needed = room_for(order[stop].roi);
      const bool too_large = needed > kMaxKeptTaps;  // its taps are not kept
      if (!too_large && used + needed > room) break;
      starts[stop] = too_large ? -1 : used;
      used += too_large ? 0 : needed;
    }
    context.ParallelFor(stop - first, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = first + begin; i < first + end; ++i) {
        if (starts[i] < 0) continue;
        const auto roi = roi_of(order[i].roi);
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
  using Element = BlockElement<T>;
  const auto pool = [&](int64_t i, const Element* pixels, int64_t stride, int64_t together, float* tile) {
    if (starts[i] < 0) {
      for (int64_t b = 0; b < together; ++b) {
        SumTapsAsFound(roi_of(order[i].roi), bins, pixels + b * stride, tile + b * bins * kBlockChannels);
      }
      return;
    }
    (together == 1 ? SumKeptTaps<1, Element> : SumKeptTaps<kPooledBlocks, Element>)(taps.data() + starts[i],
                                                                                    ends.data() + i * bins, bins,
                                                                                    pixels, stride, tile);
  };
  return PoolByBlocks(context, levels, channels, {order.data(), static_cast<size_t>(count)}, bins, prepare, pool,
                      output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
