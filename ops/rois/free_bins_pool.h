// SPDX-License-Identifier: Apache-2.0
// Pooling of RoIs whose bins are upright and of one size but at arbitrary positions; averages bilinear samples.
#pragma once

#include <span>

#include "core/context.h"
#include "ops/rois/roi_grid.h"

namespace polyop {

struct FreeBinsRoi {
  int64_t image;
  RoiAxis y, x;  // extent and samples of one bin; `start` is the approximate position of the RoI
};

/// Top left corner of a bin in pixels. A bin has no samples if it is not finite.
struct BinStart {
  double y, x;
};

/// Pools RoIs to output [rois, channels, bins] on the CPU, given starts [rois, bins]. Requires: batch indices are
/// checked. T is f32, f16 or bf16.
template <class T>
Status PoolFreeBins(const Context& context, const RoiLevel<T>& level, int64_t channels,
                    std::span<const FreeBinsRoi> rois, int64_t bins, const BinStart* starts, T* output);

/// The gradient of PoolFreeBins with respect to the map: computes grad_input [images, channels, height, width] from
/// grad_output [rois, channels, bins]. `level` gives the extents; its data is not read.
template <class T>
Status PoolFreeBinsBackward(const Context& context, const RoiLevel<T>& level, int64_t images, int64_t channels,
                            std::span<const FreeBinsRoi> rois, int64_t bins, const BinStart* starts,
                            const T* grad_output, T* grad_input);

/// The bins of RoIs, found once.
struct FreeBinsTable {
  Scratch<FreeBinsRoi> rois;
  Scratch<BinStart> starts;  // [rois, bins]

  /// Finds the bins of RoIs whose rows begin with a batch index. bins_of(r) returns an object with y and x like
  /// FreeBinsRoi, and Start(bin). The caller checks both members.
  template <class T, class BinsOf>
  static FreeBinsTable Make(const Context& context, const Tensor<const T, 2>& rows, int64_t bins,
                            const BinsOf& bins_of) {
    const int64_t count = rows.dim(0);
    FreeBinsTable table{context.Allocate<FreeBinsRoi>(count), context.Allocate<BinStart>(count * bins)};
    if (!table) return table;
    context.ParallelFor(count, GrainFor(10.0 * static_cast<double>(bins)), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const auto roi = bins_of(r);
        table.rois[r] = {ImageOf(ToFloat(rows[r * rows.dim(1)])), roi.y, roi.x};
        for (int64_t b = 0; b < bins; ++b) table.starts[r * bins + b] = roi.Start(b);
      }
    });
    return table;
  }
  explicit operator bool() const { return rois && starts; }
  std::span<const FreeBinsRoi> span() const { return rois.span(); }
};

/// Pools RoIs whose rows begin with a batch index to output [rois, channels, rows, columns]. bins_of(r) is that of
/// FreeBinsTable::Make.
template <class T, class BinsOf>
Status PoolRoisWithFreeBins(const Context& context, const RoiLevel<T>& level, const Tensor<const T, 2>& rois,
                            const BinsOf& bins_of, const Tensor<T, 4>& output) {
  const int64_t bins = output.dim(2) * output.dim(3);
  const FreeBinsTable table = FreeBinsTable::Make(context, rois, bins, bins_of);
  if (!table) return Internal("out of memory: ", rois.dim(0), " rois of ", bins, " bins");
  return PoolFreeBins<T>(context, level, output.dim(1), table.span(), bins, table.starts.data(), output.data());
}

/// The gradient of PoolRoisWithFreeBins with respect to the map.
template <class T, class BinsOf>
Status PoolRoisWithFreeBinsBackward(const Context& context, double scale, const Tensor<const T, 2>& rois,
                                    const BinsOf& bins_of, const Tensor<const T, 4>& grad_output,
                                    const Tensor<T, 4>& grad_input) {
  const int64_t bins = grad_output.dim(2) * grad_output.dim(3);
  const FreeBinsTable table = FreeBinsTable::Make(context, rois, bins, bins_of);
  if (!table) return Internal("out of memory: ", rois.dim(0), " rois of ", bins, " bins");
  return PoolFreeBinsBackward<T>(context, {nullptr, grad_input.dim(2), grad_input.dim(3), scale}, grad_input.dim(0),
                                 grad_input.dim(1), table.span(), bins, table.starts.data(), grad_output.data(),
                                 grad_input.data());
}

}  // namespace polyop
