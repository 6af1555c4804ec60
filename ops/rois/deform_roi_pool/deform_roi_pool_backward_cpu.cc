// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/deform_roi_pool/deform_roi_pool_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rois/batch_indices.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool_backward.h"
#include "ops/rois/deform_roi_pool/deform_roi_pool_bins.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Number of bins whose gradients are copied at a time, and maximum size of the copy of an image's channels.
constexpr int64_t kBinsAtOnce = 64, kCopiedBytes = 16 << 20;

// The pixels [first, first + count) of an axis that the samples of a bin use: their weights, and the derivatives of the
// weights with respect to the bin's position.
struct AxisSlopes {
  float* weight;
  float* slope;
  int64_t first, count;

  void Fill(RoiAxis axis, double start, int64_t extent) {
    axis.start = start;
    int64_t begin = 0, end = 0;
    axis.Inside(0, extent, &begin, &end);
    int64_t low = extent, high = -1;
    for (int64_t s = begin; s < end; ++s) {
      const LinearTaps taps = RoiTaps(axis.Position(0, s), extent);
      if (!taps.inside) continue;
      low = std::min<int64_t>(low, taps.low);
      high = std::max<int64_t>(high, taps.high);
    }
    first = low;
    count = std::max<int64_t>(high - low + 1, 0);
    std::fill_n(weight, count, 0.0f);
    std::fill_n(slope, count, 0.0f);
    for (int64_t s = begin; s < end; ++s) {
      const double at = axis.Position(0, s);
      const LinearTaps taps = RoiTaps(at, extent);
      if (!taps.inside) continue;
      weight[taps.low - low] += taps.low_weight;
      weight[taps.high - low] += taps.high_weight;
      if (at < 0 || taps.high == taps.low) continue;  // at the border
      slope[taps.low - low] -= 1;
      slope[taps.high - low] += 1;
    }
  }
};

// Sums over the samples of a bin of one block the derivatives with respect to the bin's position.
template <class Element>
HWY_INLINE void SumSlopes(const AxisSlopes& y, const AxisSlopes& x, const Element* block, int64_t width, BlockSum& down,
                          BlockSum& right) {
  down.Fill(0);
  right.Fill(0);
  for (int64_t row = 0; row < y.count; ++row) {
    const Element* const pixel = block + ((y.first + row) * width + x.first) * kBlockChannels;
    BlockSum across, slope;
    across.Fill(0);
    slope.Fill(0);
    for (int64_t column = 0; column < x.count; ++column) {
      across.Add(pixel + column * kBlockChannels, x.weight[column]);
      slope.Add(pixel + column * kBlockChannels, x.slope[column]);
    }
    down.Add(across, y.slope[row]);
    right.Add(slope, y.weight[row]);
  }
}

// Adds a * b, channel by channel.
HWY_INLINE void AddProduct(const BlockSum& a, const BlockSum& b, BlockSum& sum) {
  for (int64_t i = 0; i < kBlockVectors; ++i) sum.v[i] = hn::MulAdd(a.v[i], b.v[i], sum.v[i]);
}

HWY_INLINE float SumOf(const BlockSum& block) {
  auto sum = block.v[0];
  for (int64_t i = 1; i < kBlockVectors; ++i) sum = hn::Add(sum, block.v[i]);
  return hn::ReduceSum(BlockTag(), sum);
}

// The gradient of the offsets.
template <class T>
class OffsetGradient {
  using Element = BlockElement<T>;

 public:
  OffsetGradient(const DeformRoiPool& op, const Tensor<const T, 4>& grad_output, const Tensor<const T, 4>& input,
                 const Tensor<const T, 2>& rois, const T* offsets)
      : op_(op), grad_output_(grad_output), input_(input), rois_(rois), offsets_(offsets) {}

  // Copies blocks of an image's channels, and adds their products for all boxes, before the next blocks.
  Status Run(const Context& context, const Tensor<T, 4>& grad_offset) const {
    const int64_t channels = input_.dim(1), pixels = input_.dim(2) * input_.dim(3), count = rois_.dim(0);
    const int64_t blocks = ChannelBlocks::BlocksFor(channels), block_size = pixels * kBlockChannels;
    const int64_t block_bytes = std::max<int64_t>(block_size * static_cast<int64_t>(sizeof(Element)), 1);
    const int64_t at_once = std::clamp<int64_t>(kCopiedBytes / block_bytes, 1, std::max<int64_t>(blocks, 1));
    const int64_t bins = op_.pooled_height * op_.pooled_width;
    const int64_t tile = at_once * kBinsAtOnce * kBlockChannels, axes = 2 * (input_.dim(2) + input_.dim(3));
    const Scratch<float> sums = context.Allocate<float>(count * 2 * bins);
    const Scratch<Element> copy = context.Allocate<Element>(at_once * block_size);
    if (!sums || !copy) return Internal("out of memory: the gradients of ", count, " rois");
    std::fill_n(sums.data(), sums.size(), 0.0f);
    for (int64_t image = 0; pixels > 0 && image < input_.dim(0); ++image) {
      for (int64_t first = 0; first < blocks; first += at_once) {
        const int64_t some = std::min(at_once, blocks - first);
        ToChannelBlocks(context, input_.data() + image * channels * pixels, 1, channels, pixels, copy.data(), first,
                        some);
        const auto add = [&](float* memory, int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            if (ImageOf(ToFloat(rois_[5 * r])) != image) continue;
            AddRoi(r, first, some, copy.data(), memory, sums.data() + r * 2 * bins);
          }
        };
        if (!context.ParallelForWithScratch<float>(count, 1, tile + axes, add)) {
          return Internal("out of memory: the gradients of a roi of ", channels, " channels");
        }
      }
    }
    for (int64_t i = 0; i < grad_offset.size(); ++i) grad_offset[i] = FromFloat<T>(sums[i]);
    return Status::Ok();
  }

 private:
  // Adds the gradients of box r in `blocks` blocks from block `first` to sums [2][bins].
  void AddRoi(int64_t r, int64_t first, int64_t blocks, const Element* copy, float* memory, float* sums) const {
    const int64_t channels = input_.dim(1), height = input_.dim(2), width = input_.dim(3);
    const int64_t bins = op_.pooled_height * op_.pooled_width;
    const auto roi = ShiftedBins<T>::Make(op_, rois_.data() + 5 * r, offsets_, r);
    const double samples = static_cast<double>(roi.y.samples) * static_cast<double>(roi.x.samples);
    if (samples == 0) return;
    float* const tile = memory + 2 * (height + width);
    AxisSlopes y{memory, memory + height, 0, 0}, x{memory + 2 * height, memory + 2 * height + width, 0, 0};
    for (int64_t start = 0; start < bins; start += kBinsAtOnce) {
      const int64_t some = std::min(kBinsAtOnce, bins - start);
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t channel = (first + b) * kBlockChannels;
        InterleaveChannels(grad_output_.data() + (r * channels + channel) * bins + start,
                           std::min(kBlockChannels, channels - channel), bins, some,
                           tile + b * kBinsAtOnce * kBlockChannels);
      }
      for (int64_t i = 0; i < some; ++i) {
        const BinStart at = roi.Start(start + i);
        if (!std::isfinite(at.y) || !std::isfinite(at.x)) continue;
        y.Fill(roi.y, at.y, height);
        x.Fill(roi.x, at.x, width);
        BlockSum downs, rights;
        downs.Fill(0);
        rights.Fill(0);
        for (int64_t b = 0; y.count * x.count > 0 && b < blocks; ++b) {
          BlockSum grad, down, right;
          grad.Load(tile + (b * kBinsAtOnce + i) * kBlockChannels);
          SumSlopes(y, x, copy + b * height * width * kBlockChannels, width, down, right);
          AddProduct(grad, down, downs);
          AddProduct(grad, right, rights);
        }
        sums[start + i] += static_cast<float>(SumOf(rights) * (roi.step_x / samples));
        sums[bins + start + i] += static_cast<float>(SumOf(downs) * (roi.step_y / samples));
      }
    }
  }

  const DeformRoiPool& op_;
  const Tensor<const T, 4>& grad_output_;
  const Tensor<const T, 4>& input_;
  const Tensor<const T, 2>& rois_;
  const T* offsets_;  // of all rois
};

template <class T>
Status DeformRoiPoolBackwardCpu(const DeformRoiPoolBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                                Tensor<const T, 4> input, Tensor<const T, 2> rois,
                                std::optional<Tensor<const T, 4>> offset, std::optional<Tensor<T, 4>> grad_input,
                                std::optional<Tensor<T, 4>> grad_offset) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  const T* const offsets = offset ? offset->data() : nullptr;
  if (grad_input) {
    POLYOP_RETURN_IF_ERROR(PoolRoisWithFreeBinsBackward<T>(
        context, op.spatial_scale, rois,
        [&](int64_t r) { return ShiftedBins<T>::Make(op, rois.data() + 5 * r, offsets, r); }, grad_output,
        *grad_input));
  }
  if (!grad_offset) return Status::Ok();
  if (offsets == nullptr) {
    std::fill_n(grad_offset->data(), grad_offset->size(), FromFloat<T>(0));
    return Status::Ok();
  }
  return OffsetGradient<T>(op, grad_output, input, rois, offsets).Run(context, *grad_offset);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(DeformRoiPoolBackward, DeformRoiPoolBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
