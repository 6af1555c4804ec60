// SPDX-License-Identifier: Apache-2.0
// The gradients of deformable convolution on the GPU: by columns if the process has cuBLASLt. Otherwise a block
// multiplies a tile of gradients of the output with the weights, which gives gradients of samples, and spreads them
// over pixels, offsets and masks. For the gradients of the weights it gathers samples into shared memory, as the
// forward pass does.
#pragma once

#include <algorithm>
#include <optional>

#include "kernels/cuda/atomic_add.h"
#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/split_sums.h"
#include "kernels/cuda/warp_lanes.h"
#include "ops/deform/deform_conv_backward_columns_cuda.h"
#include "ops/deform/deform_conv_gradients_cuda.h"

namespace polyop {

namespace deform_conv_internal {

// Returns whether a group of filters has too few filters, or too few channels with the same samples, for tiles.
inline bool HasFew(const Sizes& s) {
  return s.group_filters() < kFew || std::min(s.group_channels(), s.deform_channels()) < kFew;
}

// The channels of a deform group that belong to one group of filters.
struct ChannelRun {
  int64_t group, begin, end;

  // Returns the maximum number of runs of a deform group.
  static int64_t MaxRuns(const Sizes& s) {
    if (s.channels == 0) return 0;
    const int64_t deform = s.deform_channels(), group = s.group_channels();
    if (deform % group == 0) return deform / group;
    return group % deform == 0 ? 1 : (deform - 1) / group + 2;
  }
  // Returns a run, which may be empty.
  POLYOP_HD static ChannelRun Of(const Sizes& s, int64_t deform_group, int64_t index) {
    const int64_t first = deform_group * s.deform_channels(), last = first + s.deform_channels();
    const int64_t group = first / s.group_channels() + index;
    const int64_t begin = group * s.group_channels(), end = begin + s.group_channels();
    return {group, begin > first ? begin : first, end < last ? end : last};
  }
};

// The sums over channels of a sample's gradient times its four pixels.
struct PixelDots {
  float of[4] = {0, 0, 0, 0};

  // Adds a channel, and its gradients to its sums, which may be null. Pixels and sums are `step` and `sums_step`
  // elements apart. A pixel whose weight is 0 gets none.
  template <class T>
  POLYOP_DEVICE void Add(const BilinearTaps& taps, const T* pixels, int64_t step, float grad, float* sums,
                         int64_t sums_step) {
    for (int k = 0; k < 4; ++k) {
      if (taps.pixel[k] < 0) continue;
      of[k] = std::fma(grad, ToFloat(pixels[taps.pixel[k] * step]), of[k]);
      const float weight = taps.Weight(k);
      if (sums != nullptr && weight != 0) AtomicAdd(sums + taps.pixel[k] * sums_step, weight * grad);
    }
  }
};

// Adds the gradients of samples to the sums of the input's, and writes those of offsets and masks if `slopes`. One
// thread per sample, for few filters or channels per group.
template <class T>
Status SampleGradsByThreads(const CudaContext& cuda, const Sizes& s, int64_t batch, const BackwardTensors<T>& tensors,
                            const ChannelSums& sums, bool slopes) {
  const int64_t max_runs = ChannelRun::MaxRuns(s);
  const Divider pixels(s.out_pixels), by_points(s.points()), by_groups(s.deform_groups);
  return ForEach(cuda, batch * s.deform_groups * s.points() * s.out_pixels, [=] POLYOP_DEVICE(int64_t i) {
    int64_t out, point, deform_group;
    const int64_t n = by_groups.Split(by_points.Split(pixels.Split(i, &out), &point), &deform_group);
    const BilinearTaps taps = tensors.Taps(s, n, deform_group, point, out);
    PixelDots dots;
    for (int64_t r = 0; r < max_runs; ++r) {
      const ChannelRun run = ChannelRun::Of(s, deform_group, r);
      for (int64_t channel = run.begin; channel < run.end; ++channel) {
        if (!slopes && !sums.Has(channel)) continue;
        float grad = 0;
        for (int64_t f = run.group * s.group_filters(); f < (run.group + 1) * s.group_filters(); ++f) {
          const float weight = tensors.Weight(s, f, channel - run.group * s.group_channels(), point);
          grad = std::fma(tensors.GradOutput(s, n, f, out), weight, grad);
        }
        dots.Add(taps, tensors.Plane(s, n, channel), 1, grad, sums.data != nullptr ? sums.Plane(n, channel) : nullptr,
                 1);
      }
    }
    if (slopes) tensors.WriteSlopes(s, n, deform_group, point, out, BilinearSlopes::Of(taps, dots.of));
  });
}

// Float sums [batch][pixels][count] of the channels [first, first + count) of the gradients of the input. `data` may be
// null.
struct SumsByPixels {
  float* data;
  int64_t first, count;
};

// Like SampleGradsByThreads. A block computes the samples of one point for a tile of output pixels, some channels at a
// time. The threads of a warp spread neighbouring channels of the same sample.
template <class T>
Status SampleGradsByTiles(const CudaContext& cuda, const Sizes& s, int64_t batch, const BackwardTensors<T>& tensors,
                          const SumsByPixels& sums, bool slopes) {
  using Product = TileProduct<T>;
  using Order = typename Product::Order;
  constexpr int kColumns = Product::kColumns, kRows = Product::kMinRows;
  constexpr int kStep = kRows + 1;                              // so that channels and pixels are in different banks
  constexpr int kOfWarp = kColumns / (Product::kThreads / 32);  // pixels
  constexpr int64_t kShared = Product::SharedBytes(kRows) + kStep * kColumns * static_cast<int64_t>(sizeof(float)) +
                              kColumns * static_cast<int64_t>(sizeof(BilinearTaps)) + 32;
  struct Dots {
    PixelDots of[kOfWarp];
  };
  const int64_t max_runs = ChannelRun::MaxRuns(s), plane = s.height * s.width;
  const Divider tiles(BlocksFor(s.out_pixels, kColumns)), by_points(s.points()), by_groups(s.deform_groups);
  const int64_t blocks = batch * s.deform_groups * s.points() * BlocksFor(s.out_pixels, kColumns);
  return ForBlocks(cuda, blocks, Product::kThreads, kShared, [=] POLYOP_DEVICE(Block& block) {
    Product product(block, kRows);
    float* const grads = block.Shared<float>(kStep * kColumns);  // of samples, [kColumns][kStep]
    BilinearTaps* const taps = block.Shared<BilinearTaps>(kColumns);
    Block::Local<Dots> dots(block);
    int64_t tile, point, deform_group;
    const int64_t n = by_groups.Split(by_points.Split(tiles.Split(block.index, &tile), &point), &deform_group);
    const int64_t first = tile * kColumns, rest = s.out_pixels - first;
    const int columns = rest < kColumns ? static_cast<int>(rest) : kColumns;
    block.ForThreads([&](int t) {
      if (t < columns) taps[t] = tensors.Taps(s, n, deform_group, point, first + t);
      dots[t] = Dots();
    });
    for (int64_t r = 0; r < max_runs; ++r) {
      const ChannelRun run = ChannelRun::Of(s, deform_group, r);
      const int64_t last_sum = sums.first + sums.count, first_filter = run.group * s.group_filters();
      const int64_t begin = slopes || run.begin > sums.first ? run.begin : sums.first;
      const int64_t end = slopes || run.end < last_sum ? run.end : last_sum;
      for (int64_t channel = begin; channel < end; channel += kRows) {
        const int held = end - channel < kRows ? static_cast<int>(end - channel) : kRows;
        const T* const weights = tensors.by_channels + (channel * s.points() + point) * s.group_filters();
        product.Clear();
        for (int64_t f = 0; f < s.group_filters(); f += Product::kDepth) {
          const int64_t left = s.group_filters() - f;
          const int depth = left < Product::kDepth ? static_cast<int>(left) : Product::kDepth;
          product.template Add<Order::kDeep, Order::kAlong>(
              [&](int k, int row) {
                const bool inside = k < depth && row < held;
                const int64_t at = (inside ? row : 0) * s.points() * s.group_filters() + f + (inside ? k : 0);
                const float value = ToFloat(weights[at]);
                return inside ? value : 0.0f;
              },
              [&](int k, int column) {
                const bool inside = k < depth && column < columns;
                const float value =
                    tensors.GradOutput(s, n, first_filter + f + (inside ? k : 0), first + (inside ? column : 0));
                return inside ? value : 0.0f;
              });
        }
        product.Store([&](int row, int column, float sum) { grads[column * kStep + row] = sum; });
        const T* const from = tensors.by_pixels + n * plane * s.channels + channel;
        float* const to = sums.data != nullptr ? sums.data + n * plane * sums.count + channel - sums.first : nullptr;
        block.ForThreads([&](int t) {
          for (int j = 0; j < kOfWarp; ++j) {
            const int column = t / 32 * kOfWarp + j;
            if (column >= columns) continue;
            for (int row = t % 32; row < held; row += 32) {
              dots[t].of[j].Add(taps[column], from + row, s.channels, grads[column * kStep + row],
                                to != nullptr ? to + row : nullptr, sums.count);
            }
          }
        });
      }
    }
    if (!slopes) return;
    block.ForWarps([&](int warp) {
      for (int j = 0; j < kOfWarp; ++j) {
        for (int k = 0; k < 4; ++k) {
          Lanes<float> sum;
          ForLanes([&](int lane) { sum[lane] = dots[warp * 32 + lane].of[j].of[k]; });
          sum.Sum<1, kWarpLanes>([](float a, float b) { return a + b; });
          ForLanes([&](int lane) {
            if (lane == 0) grads[(warp * kOfWarp + j) * 4 + k] = sum[lane];
          });
        }
      }
    });
    block.ForThreads([&](int t) {
      if (t >= columns) return;
      tensors.WriteSlopes(s, n, deform_group, point, first + t, BilinearSlopes::Of(taps[t], grads + 4 * t));
    });
  });
}

// Computes the gradients of the input, if `grad_input` exists, and those of offsets and masks, if `slopes`. The sums of
// the input's gradients are in scratch memory, for as many channels at a time as fit into kMaxScratchSums.
template <class T>
Status SampleGradsInScratch(const CudaContext& cuda, const Sizes& s, int64_t batch, const BackwardTensors<T>& tensors,
                            const std::optional<Tensor<T, 4>>& grad_input, bool slopes) {
  const int64_t plane = s.height * s.width, one = batch * plane;
  if (grad_input && grad_input->size() > 0) {
    // The size of the scratch must not shrink when extents grow.
    const int64_t at_once = std::clamp<int64_t>(kMaxScratchSums / one, 1, s.channels);
    float* const data = cuda.Allocate<float>(std::min(one * s.channels, std::max(kMaxScratchSums, one)));
    for (int64_t first = 0; first < s.channels; first += at_once) {
      const SumsByPixels sums{data, first, std::min(at_once, s.channels - first)};
      const bool with_slopes = slopes && sums.count == s.channels;
      if (with_slopes) slopes = false;
      POLYOP_RETURN_IF_ERROR(ClearSums(cuda, data, one * sums.count));
      POLYOP_RETURN_IF_ERROR(SampleGradsByTiles(cuda, s, batch, tensors, sums, with_slopes));
      POLYOP_RETURN_IF_ERROR(
          Transpose(cuda, batch, plane, sums.count, data, grad_input->data() + first * plane, s.channels * plane));
    }
  }
  return slopes ? SampleGradsByTiles(cuda, s, batch, tensors, {nullptr, 0, s.channels}, true) : cuda.Check();
}

// One block per weight, for few filters per group.
template <class T>
Status WeightGradsByBlocks(const CudaContext& cuda, const Sizes& s, int64_t batch, const BackwardTensors<T>& tensors,
                           T* grad_weight) {
  const Divider pixels(s.out_pixels), by_points(s.points()), by_channels(s.group_channels());
  return SumByBlocks(
      cuda, s.filters * s.group_channels() * s.points(), batch * s.out_pixels,
      [=] POLYOP_DEVICE(int64_t i, int64_t j) {
        int64_t point, channel, out;
        const int64_t filter = by_channels.Split(by_points.Split(i, &point), &channel), n = pixels.Split(j, &out);
        channel += filter / s.group_filters() * s.group_channels();
        const ZeroPaddedSample sample = tensors.Sample(s, n, channel / s.deform_channels(), point, out);
        return ValueOf(sample, tensors.Plane(s, n, channel)) * tensors.GradOutput(s, n, filter, out);
      },
      [=] POLYOP_DEVICE(int64_t i, float sum) { grad_weight[i] = FromFloat<T>(sum); });
}

// A block computes a tile of filters x channels of one point, for a part of the output pixels of all images.
template <class T>
Status WeightGradsByTiles(const CudaContext& cuda, const Sizes& s, int64_t batch, const BackwardTensors<T>& tensors,
                          T* grad_weight) {
  using Product = TileProduct<T>;
  using Order = typename Product::Order;
  constexpr int kPixels = 64;  // whose samples are found at a time
  const int64_t weights = s.filters * s.group_channels() * s.points(), max_runs = ChannelRun::MaxRuns(s);
  const int64_t row_tiles = BlocksFor(s.group_filters(), Product::RowsFor(s.group_filters()));
  const int64_t channels = std::min(s.group_channels(), s.deform_channels());
  const int64_t products = s.deform_groups * max_runs * s.points();
  const Divider chunks(BlocksFor(s.out_pixels, kPixels));
  const int64_t all_chunks = batch * BlocksFor(s.out_pixels, kPixels);
  const SplitSums sums =
      SplitSums::Allocate(cuda, weights, products * row_tiles * BlocksFor(channels, Product::kColumns), all_chunks / 2);
  const int64_t plane = s.height * s.width;
  const Divider by_points(s.points()), by_runs(max_runs), by_groups(s.deform_groups);
  const auto multiply = [=] POLYOP_DEVICE(Block& block, Product& product, const Tile& tile) {
    ZeroPaddedSample* const samples = block.Shared<ZeroPaddedSample>(kPixels);
    int64_t point, r, deform_group;
    const int64_t part = by_groups.Split(by_runs.Split(by_points.Split(tile.matrix, &point), &r), &deform_group);
    const ChannelRun run = ChannelRun::Of(s, deform_group, r);
    const int64_t first_filter = run.group * s.group_filters() + tile.row, first_channel = run.begin + tile.column;
    const int64_t rest = run.end - first_channel, columns = rest < tile.columns ? rest : tile.columns;
    if (columns <= 0) return;
    for (int64_t chunk = sums.Begin(part, all_chunks); chunk < sums.Begin(part + 1, all_chunks); ++chunk) {
      int64_t first;
      const int64_t n = chunks.Split(chunk, &first);
      first *= kPixels;
      const int64_t left = s.out_pixels - first, pixels = left < kPixels ? left : kPixels;
      block.ForThreads([&](int t) {
        for (int64_t p = t; p < kPixels; p += block.threads()) {
          samples[p] = p < pixels ? tensors.Sample(s, n, deform_group, point, first + p) : ZeroPaddedSample();
        }
      });
      // Reads an element that exists instead of one outside, which needs no branches.
      const T* const from = tensors.by_pixels + n * plane * s.channels + first_channel;
      const int held_rows = static_cast<int>(tile.rows), held_columns = static_cast<int>(columns);
      for (int64_t p = 0; p < pixels; p += Product::kDepth) {
        const int depth = pixels - p < Product::kDepth ? static_cast<int>(pixels - p) : Product::kDepth;
        product.template Add<Order::kDeep, Order::kAlong>(
            [&](int k, int row) {
              const bool inside = k < depth && row < held_rows;
              const float value =
                  tensors.GradOutput(s, n, first_filter + (inside ? row : 0), first + p + (inside ? k : 0));
              return inside ? value : 0.0f;
            },
            [&](int k, int column) {
              const bool inside = column < held_columns;
              const float value = ValueOfPixels(samples + p + k, from + (inside ? column : 0), s.channels);
              return inside ? value : 0.0f;
            });
      }
    }
    product.Store([&](int row, int column, float sum) {
      if (row >= tile.rows || column >= columns) return;
      const int64_t channel = first_channel + column - run.group * s.group_channels();
      sums.Part(part)[((first_filter + row) * s.group_channels() + channel) * s.points() + point] = sum;
    });
  };
  POLYOP_RETURN_IF_ERROR(ForTiles<T>(cuda, sums.parts * products, s.group_filters(), channels,
                                     kPixels * static_cast<int64_t>(sizeof(ZeroPaddedSample)), multiply));
  return sums.Round(cuda, grad_weight);
}

// Computes the gradients of input, offsets, masks and weights that exist, by tiles, or by threads and blocks if
// channels or filters are few.
template <class T>
Status GradientsByTiles(const CudaContext& cuda, const Sizes& s, int64_t batch, BackwardTensors<T> tensors,
                        const DeformConvGradientsCuda<T>& gradients) {
  const bool slopes = gradients.offset || gradients.mask;
  if (!HasFew(s) && (gradients.input || slopes)) {
    POLYOP_RETURN_IF_ERROR(CopyByChannels(cuda, s, tensors.weight, &tensors.by_channels));
  }
  if (gradients.weight) {
    const auto compute = s.group_filters() < kFew ? WeightGradsByBlocks<T> : WeightGradsByTiles<T>;
    POLYOP_RETURN_IF_ERROR(compute(cuda, s, batch, tensors, gradients.weight->data()));
  }
  if (!HasFew(s)) return SampleGradsInScratch(cuda, s, batch, tensors, gradients.input, slopes);
  return SumAtomicallyWithOthers(cuda, batch, s.channels, s.height * s.width, gradients.input, slopes,
                                 [&](const ChannelSums& sums, bool with_slopes) {
                                   return SampleGradsByThreads(cuda, s, batch, tensors, sums, with_slopes);
                                 });
}

}  // namespace deform_conv_internal

/// Computes the gradients that exist. `mask` is null for version 1. Those of the input are sums by atomic
/// additions; the others have a fixed order of additions.
template <class T>
Status DeformConvBackwardCuda(const DeformConvRule& rule, const CudaContext& cuda,
                              const Tensor<const T, 4>& grad_output, const Tensor<const T, 4>& input, const T* offset,
                              const T* mask, const Tensor<const T, 4>& weight,
                              const DeformConvGradientsCuda<T>& gradients) {
  namespace internal = deform_conv_internal;
  POLYOP_RETURN_IF_ERROR(CheckDeformConvPixels(input.shape()));
  const auto s = internal::Sizes::Of(rule, input.shape(), weight.shape(), grad_output.shape());
  const int64_t batch = input.dim(0);
  const bool tiles = !internal::HasFew(s), of_samples = gradients.input || gradients.offset || gradients.mask;
  const T* by_pixels = nullptr;
  if ((s.group_filters() >= internal::kFew && gradients.weight) || (tiles && of_samples)) {
    POLYOP_RETURN_IF_ERROR(internal::CopyByPixels(cuda, s, batch, input.data(), &by_pixels));
  }
  const internal::BackwardTensors<T> tensors{grad_output.data(),
                                             input.data(),
                                             offset,
                                             mask,
                                             weight.data(),
                                             gradients.offset ? gradients.offset->data() : nullptr,
                                             gradients.mask ? gradients.mask->data() : nullptr,
                                             by_pixels,
                                             nullptr};
  if (gradients.bias) {
    T* const grad_bias = gradients.bias->data();
    const Divider pixels(s.out_pixels);
    POLYOP_RETURN_IF_ERROR(SumByBlocks(
        cuda, s.filters, batch * s.out_pixels,
        [=] POLYOP_DEVICE(int64_t filter, int64_t i) {
          int64_t out;
          const int64_t n = pixels.Split(i, &out);
          return tensors.GradOutput(s, n, filter, out);
        },
        [=] POLYOP_DEVICE(int64_t filter, float sum) { grad_bias[filter] = FromFloat<T>(sum); }));
  }
  CudaContext attempt = cuda;  // whose scratch the tiles may overwrite
  if (tiles && (gradients.weight || of_samples) && internal::HasColumns(s, batch)) {
    bool done = false;
    POLYOP_RETURN_IF_ERROR(internal::ColumnsBackward<T>::Run(attempt, s, batch, tensors, gradients, &done));
    if (done) return Status::Ok();
  }
  const Status status = internal::GradientsByTiles(cuda, s, batch, tensors, gradients);
  if (cuda.measuring() && attempt.used() > cuda.used()) {
    cuda.Allocate<char>(static_cast<int64_t>(attempt.used() - cuda.used()));
  }
  return status;
}

}  // namespace polyop
