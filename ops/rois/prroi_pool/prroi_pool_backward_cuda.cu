// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_reduce.h"
#include "ops/rois/prroi_pool/prroi_pool_backward.h"
#include "ops/rois/prroi_pool/prroi_pool_edges.h"
#include "ops/rois/prroi_pool/prroi_pool_taps.h"
#include "ops/rois/scatter_bins_cuda.h"

namespace polyop {
namespace {

template <class T>
struct PreciseBinGrads : BinGrads<T> {
  PrRoiPool op;
  int64_t height, width;

  POLYOP_HD PreciseTaps Roi(int64_t r) const {
    return {PreciseRoi::Of(op, this->Row(r)), height, width, op.pooled_width};
  }
};

// Sums over channels of the gradient of a bin times its average, and times the averages over its edges.
struct EdgeProducts {
  double average = 0, left = 0, right = 0, top = 0, bottom = 0;
};

// The gradients with respect to a box.
struct BoxGrads {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// Adds the products of some channels. `planes` are those of the image, `outputs` those of the RoI.
template <class T>
struct PreciseEdges {
  const T *grads, *planes, *outputs;
  int64_t pixels, bins, width;
  int64_t first, last;  // channels

  // Returns the sum over the channels of the gradients times a pixel. A pixel with weight 0 adds nothing.
  POLYOP_DEVICE double Pixel(int64_t bin, int64_t y, int64_t x, double weight) const {
    if (weight == 0) return 0;
    float sum = 0;
    for (int64_t c = first; c < last; ++c) {
      sum += ToFloat(grads[c * bins + bin]) * ToFloat(planes[c * pixels + y * width + x]);
    }
    return weight * static_cast<double>(sum);
  }
  POLYOP_DEVICE EdgeProducts Of(int64_t bin, const PreciseBin& down, const PreciseBin& across, int64_t height) const {
    EdgeProducts sums;
    for (int64_t c = first; c < last; ++c) {
      sums.average += static_cast<double>(ToFloat(grads[c * bins + bin]) * ToFloat(outputs[c * bins + bin]));
    }
    const EdgePixels top = EdgePixels::At(down.low, height), bottom = EdgePixels::At(down.low + down.size, height);
    const EdgePixels left = EdgePixels::At(across.low, width), right = EdgePixels::At(across.low + across.size, width);
    for (int64_t y = down.first; y < down.last; ++y) {
      const double weight = down.WeightOf(y);
      for (int64_t e = 0; e < left.count; ++e) sums.left += Pixel(bin, y, left.first + e, weight * left.weights[e]);
      for (int64_t e = 0; e < right.count; ++e) sums.right += Pixel(bin, y, right.first + e, weight * right.weights[e]);
    }
    for (int64_t x = across.first; x < across.last; ++x) {
      const double weight = across.WeightOf(x);
      for (int64_t e = 0; e < top.count; ++e) sums.top += Pixel(bin, top.first + e, x, weight * top.weights[e]);
      for (int64_t e = 0; e < bottom.count; ++e) {
        sums.bottom += Pixel(bin, bottom.first + e, x, weight * bottom.weights[e]);
      }
    }
    return sums;
  }
};

// Computes the gradients of boxes [R, 5], one block for each.
template <class T>
Status PreciseBoxGradientCuda(const CudaContext& cuda, const PreciseBinGrads<T>& rois, const Tensor<const T, 4>& map,
                              const T* output, Tensor<T, 2>& grad_rois) {
  constexpr int64_t kChannels = 8;  // that a thread adds at a time
  const int64_t images = map.dim(0), channels = map.dim(1), pixels = rois.height * rois.width, bins = rois.bins;
  const T* const planes = map.data();
  T* const to = grad_rois.data();
  constexpr int64_t kShared = kThreadsPerBlock * static_cast<int64_t>(sizeof(BoxGrads));
  return ForBlocks(cuda, grad_rois.dim(0), kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    BoxGrads* const sums = block.Shared<BoxGrads>(kThreadsPerBlock);
    const int64_t r = block.index, image = rois.Image(r);
    const PreciseRoi roi = PreciseRoi::Of(rois.op, rois.Row(r));
    const bool valid = image >= 0 && image < images && roi.y.size > 0 && roi.x.size > 0 && pixels > 0;
    block.ForThreads([&](int t) {
      BoxGrads sum;
      const int64_t items = valid ? (channels + kChannels - 1) / kChannels * bins : 0;
      for (int64_t i = t; i < items; i += kThreadsPerBlock) {
        const int64_t bin = i % bins, by = bin / rois.op.pooled_width, bx = bin % rois.op.pooled_width;
        const int64_t first = i / bins * kChannels, last = first + kChannels < channels ? first + kChannels : channels;
        const PreciseBin down = roi.y.Bin(by, rois.height), across = roi.x.Bin(bx, rois.width);
        const PreciseEdges<T> edges{rois.grads + r * channels * bins,
                                    planes + image * channels * pixels,
                                    output + r * channels * bins,
                                    pixels,
                                    bins,
                                    rois.width,
                                    first,
                                    last};
        const EdgeProducts products = edges.Of(bin, down, across, rois.height);
        const PreciseEnds x = PreciseEnds::Of(static_cast<double>(bx), static_cast<double>(rois.op.pooled_width),
                                              across.size, products.average, products.left, products.right);
        const PreciseEnds y = PreciseEnds::Of(static_cast<double>(by), static_cast<double>(rois.op.pooled_height),
                                              down.size, products.average, products.top, products.bottom);
        sum = {sum.x1 + x.low, sum.y1 + y.low, sum.x2 + x.high, sum.y2 + y.high};
      }
      sums[t] = sum;
    });
    ReduceBlock(block, sums, kThreadsPerBlock, [] POLYOP_DEVICE(const BoxGrads& a, const BoxGrads& b) {
      return BoxGrads{a.x1 + b.x1, a.y1 + b.y1, a.x2 + b.x2, a.y2 + b.y2};
    });
    block.ForThreads([&](int t) {
      if (t != 0) return;
      const BoxGrads& sum = sums[0];
      const double scale = rois.op.spatial_scale;
      to[5 * r] = FromFloat<T>(0);
      to[5 * r + 1] = FromFloat<T>(static_cast<float>(sum.x1 * scale));
      to[5 * r + 2] = FromFloat<T>(static_cast<float>(sum.y1 * scale));
      to[5 * r + 3] = FromFloat<T>(static_cast<float>(sum.x2 * scale));
      to[5 * r + 4] = FromFloat<T>(static_cast<float>(sum.y2 * scale));
    });
  });
}

template <class T>
Status PrRoiPoolBackwardCuda(const PrRoiPoolBackward& op, const CudaContext& cuda, Tensor<const T, 4> grad_output,
                             Tensor<const T, 4> features, Tensor<const T, 2> rois, Tensor<const T, 4> output,
                             std::optional<Tensor<T, 4>> grad_features, std::optional<Tensor<T, 2>> grad_rois) {
  const PreciseBinGrads<T> grads{BinGrads<T>::Of(rois, grad_output), op, features.dim(2), features.dim(3)};
  if (grad_features) {
    POLYOP_RETURN_IF_ERROR(ScatterBinsCuda<T>(cuda, rois.dim(0), grads.bins, grads, *grad_features));
  }
  if (!grad_rois) return Status::Ok();
  return PreciseBoxGradientCuda<T>(cuda, grads, features, output.data(), *grad_rois);
}

POLYOP_ATOMIC_CUDA_KERNELS(PrRoiPoolBackward, PrRoiPoolBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
