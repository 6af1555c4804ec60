// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rois/prroi_pool/prroi_pool_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/rois/batch_indices.h"
#include "ops/rois/prroi_pool/prroi_pool_backward.h"
#include "ops/rois/prroi_pool/prroi_pool_edges.h"
#include "ops/rois/prroi_pool/prroi_pool_taps.h"
#include "ops/rois/scatter_by_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Number of bins whose gradients are copied at a time, and maximum size of the copy of an image's channels.
constexpr int64_t kBinsAtOnce = 256, kCopiedBytes = 16 << 20;

// Consecutive pixels of an axis and their weights.
struct WeightedPixels {
  int64_t first, count;
  const float* weights;
};

WeightedPixels PixelsOf(const PreciseBin& bin, float* weights) {
  for (int64_t p = bin.first; p < bin.last; ++p) weights[p - bin.first] = static_cast<float>(bin.WeightOf(p));
  return {bin.first, std::max<int64_t>(bin.last - bin.first, 0), weights};
}

// Averages a block along an edge. `along` and `across` are the strides of pixels.
template <class Element>
HWY_INLINE BlockSum AverageOfEdge(const Element* block, const WeightedPixels& pixels, int64_t along,
                                  const EdgePixels& edge, int64_t across) {
  BlockSum sum;
  sum.Fill(0);
  const Element* at = block + (pixels.first * along + edge.first * across) * kBlockChannels;
  for (int64_t i = 0; edge.count > 0 && i < pixels.count; ++i, at += along * kBlockChannels) {
    BlockSum inner;
    inner.Fill(0);
    for (int64_t e = 0; e < edge.count; ++e) inner.Add(at + e * across * kBlockChannels, edge.weights[e]);
    sum.Add(inner, pixels.weights[i]);
  }
  return sum;
}

// Sums of products of 16 channels.
struct Products {
  BlockSum sum;

  Products() { sum.Fill(0); }
  HWY_INLINE void Add(const BlockSum& a, const BlockSum& b) {
    for (int64_t i = 0; i < kBlockVectors; ++i) sum.v[i] = hn::MulAdd(a.v[i], b.v[i], sum.v[i]);
  }
  HWY_INLINE double Total() const {
    auto all = sum.v[0];
    for (int64_t i = 1; i < kBlockVectors; ++i) all = hn::Add(all, sum.v[i]);
    return static_cast<double>(hn::ReduceSum(BlockTag(), all));
  }
};

// The gradient of the boxes.
template <class T>
class BoxGradient {
  using Element = BlockElement<T>;

 public:
  BoxGradient(const PrRoiPool& op, const Tensor<const T, 4>& grad_output, const Tensor<const T, 4>& features,
              const Tensor<const T, 2>& rois, const Tensor<const T, 4>& output)
      : op_(op), grad_output_(grad_output), features_(features), rois_(rois), output_(output) {}

  // Copies blocks of an image's channels, and adds their products for all boxes, before the next blocks.
  Status Run(const Context& context, const Tensor<T, 2>& grad_rois) const {
    const int64_t channels = features_.dim(1), pixels = features_.dim(2) * features_.dim(3), count = rois_.dim(0);
    const int64_t blocks = ChannelBlocks::BlocksFor(channels), block_size = pixels * kBlockChannels;
    const int64_t block_bytes = std::max<int64_t>(block_size * static_cast<int64_t>(sizeof(Element)), 1);
    const int64_t at_once = std::clamp<int64_t>(kCopiedBytes / block_bytes, 1, std::max<int64_t>(blocks, 1));
    const int64_t roi_floats = at_once * (2 * TileBins() + 1) * kBlockChannels + features_.dim(2) + features_.dim(3);
    const Scratch<double> sums = context.Allocate<double>(count * 4);
    const Scratch<Element> copy = context.Allocate<Element>(at_once * block_size);
    if (!sums || !copy) return Internal("out of memory: the gradients of ", count, " rois");
    std::fill_n(sums.data(), sums.size(), 0.0);
    for (int64_t image = 0; pixels > 0 && image < features_.dim(0); ++image) {
      for (int64_t first = 0; first < blocks; first += at_once) {
        const int64_t some = std::min(at_once, blocks - first);
        ToChannelBlocks(context, features_.data() + image * channels * pixels, 1, channels, pixels, copy.data(), first,
                        some);
        const auto add = [&](float* memory, int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            if (ImageOf(ToFloat(rois_[5 * r])) != image) continue;
            AddRoi(r, first, some, copy.data(), memory, sums.data() + r * 4);
          }
        };
        if (!context.ParallelForWithScratch<float>(count, 1, roi_floats, add)) {
          return Internal("out of memory: the gradients of a roi of ", channels, " channels");
        }
      }
    }
    for (int64_t r = 0; r < count; ++r) {
      grad_rois[5 * r] = FromFloat<T>(0);
      for (int64_t k = 0; k < 4; ++k) grad_rois[5 * r + 1 + k] = FromFloat<T>(static_cast<float>(sums[4 * r + k]));
    }
    return Status::Ok();
  }

 private:
  int64_t TileRows() const { return std::clamp<int64_t>(kBinsAtOnce / op_.pooled_width, 1, op_.pooled_height); }
  int64_t TileBins() const { return TileRows() * op_.pooled_width; }

  // Adds the gradients of box r in `blocks` blocks from block `first` to `sums` (x1, y1, x2, y2).
  void AddRoi(int64_t r, int64_t first, int64_t blocks, const Element* copy, float* memory, double* sums) const {
    const int64_t channels = features_.dim(1), columns = op_.pooled_width, bins = op_.pooled_height * columns;
    const PreciseRoi roi = PreciseRoi::Of(op_, rois_.data() + 5 * r);
    if (!(roi.y.size > 0 && roi.x.size > 0)) return;
    const int64_t block_floats = TileBins() * kBlockChannels;
    float* const grads = memory;
    float* const outputs = grads + blocks * block_floats;
    for (int64_t row = 0; row < op_.pooled_height; row += TileRows()) {
      const int64_t rows = std::min(TileRows(), op_.pooled_height - row);
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t channel = (first + b) * kBlockChannels, held = std::min(kBlockChannels, channels - channel);
        const int64_t from = (r * channels + channel) * bins + row * columns;
        InterleaveChannels(grad_output_.data() + from, held, bins, rows * columns, grads + b * block_floats);
        InterleaveChannels(output_.data() + from, held, bins, rows * columns, outputs + b * block_floats);
      }
      for (int64_t by = 0; by < rows; ++by) {
        AddRow(roi, row + by, blocks, copy, grads + by * columns * kBlockChannels,
               outputs + by * columns * kBlockChannels, outputs + blocks * block_floats, sums);
      }
    }
  }

  // Adds the gradients of a row of bins. Blocks of `grads` and `outputs` are TileBins() * 16 floats apart.
  void AddRow(const PreciseRoi& roi, int64_t by, int64_t blocks, const Element* copy, const float* grads,
              const float* outputs, float* memory, double* sums) const {
    const int64_t height = features_.dim(2), width = features_.dim(3), block_floats = TileBins() * kBlockChannels;
    const auto rows = static_cast<double>(op_.pooled_height), columns = static_cast<double>(op_.pooled_width);
    const PreciseBin down = roi.y.Bin(by, height);
    const EdgePixels top = EdgePixels::At(down.low, height), bottom = EdgePixels::At(down.low + down.size, height);
    float* const lefts = memory;  // [blocks][16]: averages of the edge that a bin shares with the previous one
    const WeightedPixels of_rows = PixelsOf(down, memory + blocks * kBlockChannels);
    for (int64_t bx = 0; bx < op_.pooled_width; ++bx) {
      const PreciseBin across = roi.x.Bin(bx, width);
      const WeightedPixels of_columns = PixelsOf(across, memory + blocks * kBlockChannels + height);
      const EdgePixels left = EdgePixels::At(across.low, width);
      const EdgePixels right = EdgePixels::At(across.low + across.size, width);
      Products average, at_left, at_right, at_top, at_bottom;
      for (int64_t b = 0; b < blocks; ++b) {
        const Element* const block = copy + b * height * width * kBlockChannels;
        float* const shared = lefts + b * kBlockChannels;
        BlockSum grad, value;
        grad.Load(grads + b * block_floats + bx * kBlockChannels);
        value.Load(outputs + b * block_floats + bx * kBlockChannels);
        average.Add(grad, value);
        if (bx == 0) AverageOfEdge(block, of_rows, width, left, 1).Store(1.0f, shared);
        value.Load(shared);
        at_left.Add(grad, value);
        value = AverageOfEdge(block, of_rows, width, right, 1);
        value.Store(1.0f, shared);
        at_right.Add(grad, value);
        at_top.Add(grad, AverageOfEdge(block, of_columns, 1, top, width));
        at_bottom.Add(grad, AverageOfEdge(block, of_columns, 1, bottom, width));
      }
      const double total = average.Total(), scale = op_.spatial_scale;
      const PreciseEnds x =
          PreciseEnds::Of(static_cast<double>(bx), columns, across.size, total, at_left.Total(), at_right.Total());
      const PreciseEnds y =
          PreciseEnds::Of(static_cast<double>(by), rows, down.size, total, at_top.Total(), at_bottom.Total());
      sums[0] += x.low * scale;
      sums[1] += y.low * scale;
      sums[2] += x.high * scale;
      sums[3] += y.high * scale;
    }
  }

  const PrRoiPool& op_;
  const Tensor<const T, 4>& grad_output_;
  const Tensor<const T, 4>& features_;
  const Tensor<const T, 2>& rois_;
  const Tensor<const T, 4>& output_;
};

template <class T>
Status PrRoiPoolBackwardCpu(const PrRoiPoolBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                            Tensor<const T, 4> features, Tensor<const T, 2> rois, Tensor<const T, 4> output,
                            std::optional<Tensor<T, 4>> grad_features, std::optional<Tensor<T, 2>> grad_rois) {
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, features.dim(0)));
  const RoiLevel<T> level{features.data(), features.dim(2), features.dim(3), op.spatial_scale};
  const auto roi_of = [&](int64_t r) {
    return PreciseTaps{PreciseRoi::Of(op, rois.data() + 5 * r), level.height, level.width, op.pooled_width};
  };
  const auto key_of = [&](int64_t r) {
    const PreciseMiddle middle = PreciseMiddle::Of(op, rois.data() + 5 * r);
    return RoiSortKey{ImageOf(ToFloat(rois[5 * r])), 0, MortonCode(middle.y, middle.x), r};
  };
  if (grad_features) {
    POLYOP_RETURN_IF_ERROR(ScatterByTaps<T>(context, level, features.dim(0), features.dim(1), rois.dim(0),
                                            op.pooled_height * op.pooled_width, key_of, roi_of, grad_output.data(),
                                            grad_features->data()));
  }
  return grad_rois ? BoxGradient<T>(op, grad_output, features, rois, output).Run(context, *grad_rois) : Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(PrRoiPoolBackward, PrRoiPoolBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
