// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/set_zero.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool_backward.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool_bins.h"
#include "ops/rois/free_bins_cuda.h"

namespace polyop {
namespace {

template <class T>
struct ShiftedBinsGrads : BinGrads<T> {
  DeformRoiPool op;
  const T* offsets;
  int64_t height, width;

  POLYOP_HD ShiftedBins<T> Bins(int64_t r) const { return ShiftedBins<T>::Make(op, this->Row(r), offsets, r); }
  POLYOP_HD FreeBins<ShiftedBins<T>> Roi(int64_t r) const { return {Bins(r), height, width}; }
};

// Derivatives along both axes.
struct Slopes {
  float y, x;
};

// Returns the sum over the samples of a bin and over the channels first, first + step, … of the gradient times the
// derivative of the sample with respect to the bin's position. `planes` are those of the image.
template <class T>
POLYOP_DEVICE Slopes SumOfSlopes(const ShiftedBinsGrads<T>& rois, int64_t r, int64_t bin, const T* planes,
                                 int64_t first, int64_t step) {
  const ShiftedBins<T> bins = rois.Bins(r);
  const BinStart start = bins.Start(bin);
  Slopes sums{0, 0};
  if (!(std::fabs(start.y) < INFINITY && std::fabs(start.x) < INFINITY)) return sums;
  RoiAxis down = bins.y, across = bins.x;
  down.start = start.y;
  across.start = start.x;
  int64_t y_begin, y_end, x_begin, x_end;
  down.Inside(0, rois.height, &y_begin, &y_end);
  across.Inside(0, rois.width, &x_begin, &x_end);
  for (int64_t iy = y_begin; iy < y_end; ++iy) {
    const double y_at = down.Position(0, iy);
    const LinearTaps y = RoiTaps(y_at, rois.height);
    if (!y.inside) continue;
    for (int64_t ix = x_begin; ix < x_end; ++ix) {
      const double x_at = across.Position(0, ix);
      const LinearTaps x = RoiTaps(x_at, rois.width);
      if (!x.inside) continue;
      const bool y_moves = y_at >= 0 && y.high != y.low, x_moves = x_at >= 0 && x.high != x.low;
      for (int64_t c = first; c < rois.channels; c += step) {
        const T* const low = planes + (c * rois.height + y.low) * rois.width;
        const T* const high = planes + (c * rois.height + y.high) * rois.width;
        const float grad = rois.Grad(r, c, bin);
        // A pixel with weight 0 adds nothing, even if it is NaN.
        const auto weighted = [](float weight, float value) { return weight == 0 ? 0.0f : weight * value; };
        if (y_moves) {
          sums.y += grad * (weighted(x.low_weight, ToFloat(high[x.low]) - ToFloat(low[x.low])) +
                            weighted(x.high_weight, ToFloat(high[x.high]) - ToFloat(low[x.high])));
        }
        if (x_moves) {
          sums.x += grad * (weighted(y.low_weight, ToFloat(low[x.high]) - ToFloat(low[x.low])) +
                            weighted(y.high_weight, ToFloat(high[x.high]) - ToFloat(high[x.low])));
        }
      }
    }
  }
  return sums;
}

// Computes the gradients of offsets [R, 2, bins]. Each block has some bins of all RoIs; its warps divide the channels.
template <class T>
Status OffsetGradientCuda(const CudaContext& cuda, const ShiftedBinsGrads<T>& rois, int64_t count, int64_t images,
                          const T* input, T* grad_offset) {
  constexpr int kBins = 32, kParts = kThreadsPerBlock / kBins;
  const int64_t image_size = rois.channels * rois.height * rois.width, total = count * rois.bins;
  const Divider by_bins(rois.bins);
  constexpr int64_t kShared = kThreadsPerBlock * static_cast<int64_t>(sizeof(Slopes));
  return ForBlocks(cuda, BlocksFor(total, kBins), kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    Slopes* const parts = block.Shared<Slopes>(kThreadsPerBlock);
    block.ForThreads([&](int t) {
      int64_t bin;
      const int64_t r = by_bins.Split(block.index * kBins + t % kBins, &bin);
      const int64_t image = r < count ? rois.Image(r) : -1;
      parts[t] = image < 0 || image >= images
                     ? Slopes{0, 0}
                     : SumOfSlopes<T>(rois, r, bin, input + image * image_size, t / kBins, kParts);
    });
    block.ForThreads([&](int t) {
      int64_t bin;
      const int64_t r = by_bins.Split(block.index * kBins + t, &bin);
      if (t >= kBins || r >= count) return;
      Slopes sum = parts[t];
      for (int part = 1; part < kParts; ++part) {
        sum.y += parts[part * kBins + t].y;
        sum.x += parts[part * kBins + t].x;
      }
      const ShiftedBins<T> bins = rois.Bins(r);
      const double samples = static_cast<double>(bins.y.samples) * static_cast<double>(bins.x.samples);
      const auto scaled = [&](float slope, double step) {
        return FromFloat<T>(slope == 0 ? 0.0f : static_cast<float>(slope * (step / samples)));
      };
      grad_offset[2 * r * rois.bins + bin] = scaled(sum.x, bins.step_x);
      grad_offset[(2 * r + 1) * rois.bins + bin] = scaled(sum.y, bins.step_y);
    });
  });
}

template <class T>
Status DeformRoiPoolBackwardCuda(const DeformRoiPoolBackward& op, const CudaContext& cuda,
                                 Tensor<const T, 4> grad_output, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                                 std::optional<Tensor<const T, 4>> offset, std::optional<Tensor<T, 4>> grad_input,
                                 std::optional<Tensor<T, 4>> grad_offset) {
  const T* const offsets = offset ? offset->data() : nullptr;
  const ShiftedBinsGrads<T> grads{BinGrads<T>::Of(rois, grad_output), op, offsets, input.dim(2), input.dim(3)};
  const int64_t count = rois.dim(0);
  if (grad_input) POLYOP_RETURN_IF_ERROR(ScatterBinsCuda<T>(cuda, count, grads.bins, grads, *grad_input));
  if (!grad_offset) return Status::Ok();
  T* const to = grad_offset->data();
  if (offsets != nullptr) return OffsetGradientCuda<T>(cuda, grads, count, input.dim(0), input.data(), to);
  return SetZero(cuda, grad_offset->size(), to);
}

POLYOP_ATOMIC_CUDA_KERNELS(DeformRoiPoolBackward, DeformRoiPoolBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
