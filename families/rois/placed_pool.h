// Pooling of regions whose bins are upright, of one size, and lie anywhere; always the average of bilinear samples.
#pragma once

#include <span>

#include "core/context.h"
#include "families/rois/roi_grid.h"

namespace polyop {

struct PlacedRoi {
  int64_t picture;
  RoiAxis y, x;  // of one bin: its extent and samples; `start` is roughly where the region lies
};

/// Where a bin begins, in pixels. One that is not finite has no samples.
struct BinStart {
  double y, x;
};

/// Pools rois to output [rois, channels, bins] on the CPU; starts [rois, bins]. Pictures are checked. T: f32, f16,
/// bf16.
template <class T>
Status PoolPlacedBins(const Context& context, const RoiLevel<T>& level, int64_t channels,
                      std::span<const PlacedRoi> rois, int64_t bins, const BinStart* starts, T* output);

/// The same from what describes a roi: bins_of(r) has y and x as PlacedRoi has them, and Start(bin). The rois' rows
/// begin with the picture; the output is [rois, channels, rows, columns].
template <class T, class BinsOf>
Status PoolRoisOfBins(const Context& context, const RoiLevel<T>& level, const Tensor<const T, 2>& rois,
                      const BinsOf& bins_of, const Tensor<T, 4>& output) {
  const int64_t count = rois.dim(0), bins = output.dim(2) * output.dim(3);
  const Scratch<PlacedRoi> table = context.Allocate<PlacedRoi>(count);
  const Scratch<BinStart> starts = context.Allocate<BinStart>(count * bins);
  if (!table || !starts) return Internal("out of memory: ", count, " rois of ", bins, " bins");
  context.ParallelFor(count, GrainFor(10.0 * static_cast<double>(bins)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto roi = bins_of(r);
      table[r] = {static_cast<int64_t>(ToFloat(rois[r * rois.dim(1)])), roi.y, roi.x};
      for (int64_t b = 0; b < bins; ++b) starts[r * bins + b] = roi.Start(b);
    }
  });
  return PoolPlacedBins<T>(context, level, output.dim(1), table.span(), bins, starts.data(), output.data());
}

}  // namespace polyop
