// SPDX-License-Identifier: Apache-2.0
// The gradient of pooling of RoIs with respect to the feature map, on the GPU, bin by bin.
#pragma once

#include "kernels/cuda/atomic_add.h"
#include "ops/rois/roi_grid.h"
#include "ops/rois/roi_sample.h"

namespace polyop {

/// The gradients [R, channels, bins] of RoIs whose rows begin with a batch index.
template <class T>
struct BinGrads {
  const T* rows;
  int64_t row_size;
  const T* grads;
  int64_t channels, bins;

  static BinGrads Of(const Tensor<const T, 2>& rois, const Tensor<const T, 4>& grad_output) {
    return {rois.data(), rois.dim(1), grad_output.data(), grad_output.dim(1), grad_output.dim(2) * grad_output.dim(3)};
  }
  POLYOP_HD const T* Row(int64_t r) const { return rows + row_size * r; }
  POLYOP_HD int64_t Image(int64_t r) const { return ImageOf(ToFloat(*Row(r))); }
  POLYOP_HD float Grad(int64_t r, int64_t channel, int64_t bin) const {
    return ToFloat(grads[(r * channels + channel) * bins + bin]);
  }
};

/// Adds the gradients of `count` RoIs of `bins` bins to the weighted pixels of the bins in grad_input [N, C, H, W],
/// which is overwritten. Functions of `rois`: Image(r), an integer; RoIs of invalid images are skipped;
/// Grad(r, channel, bin); and Roi(r), an object whose ForEachTap(bin, add) calls add(Tap) for the pixels whose weight
/// is not 0. Four neighbouring threads find the same pixels of a bin and share them, so that they add to neighbouring
/// pixels at the same time, those of several channels. The RoIs are visited for a few channels at a time, whose sums
/// stay in the cache.
template <class T, class Rois>
Status ScatterBinsCuda(const CudaContext& cuda, int64_t count, int64_t bins, const Rois& rois,
                       const Tensor<T, 4>& grad_input) {
  constexpr int kChannels = 16, kLanes = 4;
  const int64_t images = grad_input.dim(0), height = grad_input.dim(2), width = grad_input.dim(3);
  const RoiLevel<T> level{nullptr, height, width, 1.0};
  POLYOP_RETURN_IF_ERROR(CheckLevels<T>({&level, 1}));
  return SumAtomically(
      cuda, images, grad_input.dim(1), height * width, grad_input.data(), [&](const ChannelSums& sums) {
        const Divider by_bins(bins), by_count(count);
        const int64_t parts = BlocksFor(sums.count, kChannels);
        return ForEach(cuda, count * parts * bins * kLanes, [=] POLYOP_DEVICE(int64_t i) {
          const auto lane = static_cast<int>(i % kLanes);
          int64_t bin, r;
          const int64_t part = by_count.Split(by_bins.Split(i / kLanes, &bin), &r), image = rois.Image(r);
          if (image < 0 || image >= images) return;
          const int64_t first = sums.first + part * kChannels, left = sums.first + sums.count - first;
          const int held = left < kChannels ? static_cast<int>(left) : kChannels;
          // Loops of a fixed length keep the gradients in registers.
          float grads[kChannels];
          for (int c = 0; c < kChannels; ++c) grads[c] = c < held ? rois.Grad(r, first + c, bin) : 0;
          float* const to = sums.Plane(image, first);
          Tap mine{0, 0};
          int taps = 0;
          const auto add_mine = [&] {
            for (int c = 0; c < kChannels; ++c) {
              if (c < held) AtomicAdd(to + c * sums.inner + mine.index, grads[c] * mine.weight);
            }
          };
          rois.Roi(r).ForEachTap(bin, [&](const Tap& tap) {
            if (taps % kLanes == lane) mine = tap;
            if (++taps % kLanes == 0) add_mine();
          });
          if (taps % kLanes > lane) add_mine();
        });
      });
}

/// A rotated RoI, for ScatterBinsCuda.
struct RotatedBins {
  RotatedGrid grid;
  int64_t height, width, columns;

  template <class Add>
  POLYOP_HD void ForEachTap(int64_t bin, const Add& add) const {
    const int64_t row = bin / columns, column = bin % columns;
    const double samples = static_cast<double>(grid.u.samples) * static_cast<double>(grid.v.samples);
    const float scale = samples > 0 ? static_cast<float>(1 / samples) : 0;
    double u_range[2], v_range[2];
    grid.Bounds(height, width, u_range, v_range);
    int64_t v_begin, v_end, u_begin, u_end;
    grid.v.Inside(row, v_range[0], v_range[1], &v_begin, &v_end);
    grid.u.Inside(column, u_range[0], u_range[1], &u_begin, &u_end);
    for (int64_t iv = v_begin; iv < v_end; ++iv) {
      for (int64_t iu = u_begin; iu < u_end; ++iu) {
        const double u = grid.u.Position(column, iu), v = grid.v.Position(row, iv);
        const RoiSample sample{RoiTaps(grid.Y(u, v), height), RoiTaps(grid.X(u, v), width)};
        sample.ForEachTap(width, [&](const Tap& tap) { add(Tap{tap.index, tap.weight * scale}); });
      }
    }
  }
};

/// Rotated RoIs on one level, for ScatterBinsCuda.
template <class T>
struct RotatedBinGrads : BinGrads<T> {
  RotatedRois<T> rois;
  int64_t height, width;
  double scale;
  RoiPooling how;
  int32_t level = 0;

  /// Returns -1 for a RoI of another level, which is skipped.
  POLYOP_HD int64_t Image(int64_t r) const { return rois.Level(r) == level ? BinGrads<T>::Image(r) : -1; }
  POLYOP_HD RotatedBins Roi(int64_t r) const {
    return {RotatedGrid::Make(rois.Box(r), scale, how), height, width, how.columns};
  }
};

}  // namespace polyop
