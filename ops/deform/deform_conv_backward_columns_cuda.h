// SPDX-License-Identifier: Apache-2.0
// The gradients of deformable convolution on the GPU by cuBLASLt, if the process has it, for some output pixels at a
// time. The product of gradients of the output and weights is that of columns, [image][pixel][group][point][channel].
// One kernel spreads them over pixels, offsets and masks, and writes the samples to columns of the same layout, whose
// product with gradients of the output is that of the weights. Neighbouring threads have neighbouring channels, in
// packs of four.
//
// An input of 2x256x64x64 and 256 filters of 3x3 are two products of 9.7 billion operations each, which an H200
// computes in 0.38 ms in f32 and in 0.026 ms in f16. Its 73,728 samples of 256 channels read four pixels of the input,
// 302 MB in f32, and add as much, both within L2: 0.15 ms at 4 TB/s. Gradients of columns and columns, 75 MB each in
// f32, are written and read once, in part by L2: at most 0.06 ms at 4.8 TB/s. A warp needs some 400 instructions for a
// sample: 0.03 ms, hidden. About 0.6 ms in all in f32, and 0.23 ms in f16; tiles with single additions took 1.5 and 1.2
// ms.
#pragma once

#include <algorithm>

#include "kernels/cuda/atomic_pack.h"
#include "kernels/cuda/split_sums.h"
#include "kernels/cuda/warp_lanes.h"
#include "ops/deform/deform_conv_gradients_cuda.h"

namespace polyop {
namespace deform_conv_internal {

// The output pixels [first, first + count) of the images [image, image + images).
struct PixelRange {
  int64_t image, images, first, count;
};

// A sample, and the first elements of its pixels in an image [pixels][channels]: pixels outside have those of pixel 0.
struct ColumnSample : BilinearTaps {
  int64_t first[4];

  POLYOP_HD static ColumnSample Of(const BilinearTaps& taps, const Sizes& s) {
    ColumnSample sample;
    static_cast<BilinearTaps&>(sample) = taps;
    for (int k = 0; k < 4; ++k) sample.first[k] = (taps.pixel[k] >= 0 ? taps.pixel[k] : 0) * s.channels;
    return sample;
  }
};

// What a call of SpreadColumns reads and writes. Pointers to what is not needed are null.
template <class T>
struct ColumnVisits {
  const T* by_pixels;  // the input, [batch][pixels][channels]
  const float* grads;  // of columns
  T* columns;
  float* sums;  // of the input's gradients, [images][pixels][channels]
  bool sloped;  // whether gradients of offsets or masks are computed
  int64_t points, group_channels;
  Divider by_group_channels;

  // Visits a lane's packs of the channels [begin, end) of a sample; returns its part of the slopes. `from` and `to` are
  // the sample's image in the input and in the sums, and `row` is the first element of the output pixel's columns.
  template <int kWide, int kLanes>
  POLYOP_DEVICE BilinearSlopes Visit(const ColumnSample& sample, int lane, int64_t begin, int64_t end, int64_t point,
                                     int64_t row, const T* from, float* to) const {
    using Values = Pack<T, kWide>;
    using Sums = Pack<float, kWide>;
    const ColumnSample at = sample;
    float weight[4], dots[4] = {};
    for (int k = 0; k < 4; ++k) weight[k] = at.Weight(k);
    for (int64_t channel = begin + lane * kWide; channel < end; channel += kLanes * kWide) {
      const int64_t group = by_group_channels.Quotient(channel);
      const int64_t column = row + (group * (points - 1) + point) * group_channels + channel;
      Values read[4] = {};
      Sums grad = {};
      if (from != nullptr) {
        for (int k = 0; k < 4; ++k) read[k] = *reinterpret_cast<const Values*>(from + at.first[k] + channel);
      }
      if (grads != nullptr) grad = *reinterpret_cast<const Sums*>(grads + column);
      for (int k = 0; k < 4; ++k) {
        for (int c = 0; c < kWide; ++c) dots[k] = std::fma(grad.of[c], ToFloat(read[k].of[c]), dots[k]);
      }
      if (columns != nullptr) reinterpret_cast<Values*>(columns)[column / kWide] = ValuesOf(at, weight, read);
      if (to == nullptr) continue;
      for (int k = 0; k < 4; ++k) {
        if (at.pixel[k] < 0 || weight[k] == 0) continue;
        Sums part;
        for (int c = 0; c < kWide; ++c) part.of[c] = weight[k] * grad.of[c];
        AtomicAdd(reinterpret_cast<Sums*>(to + at.first[k] + channel), part);
      }
    }
    return BilinearSlopes::Of(at, dots);
  }

 private:
  template <int kWide>
  POLYOP_DEVICE static Pack<T, kWide> ValuesOf(const BilinearTaps& taps, const float* weight,
                                               const Pack<T, kWide>* pixels) {
    Pack<float, kWide> sum = {};
    for (int k = 0; k < 4; ++k) {
      for (int c = 0; c < kWide; ++c) {
        sum.of[c] = taps.pixel[k] >= 0 ? std::fma(ToFloat(pixels[k].of[c]), weight[k], sum.of[c]) : sum.of[c];
      }
    }
    Pack<T, kWide> values;
    for (int c = 0; c < kWide; ++c) values.of[c] = FromFloat<T>(sum.of[c]);
    return values;
  }
};

// Writes the slopes and the columns of some output pixels, and adds to the sums of the input's gradients. A block has
// samples of one point and deform group, and kLanes threads of a warp share a sample.
template <int kWide, int kLanes, class T>
Status SpreadBy(const CudaContext& cuda, const Sizes& s, const BackwardTensors<T>& tensors, const PixelRange& range,
                const ColumnVisits<T>& visits) {
  constexpr int kSamples = 32;  // of a block
  constexpr int kAtOnce = kWarpLanes / kLanes, kOfWarp = kSamples / (kThreadsPerBlock / kWarpLanes);
  static_assert(kOfWarp % kAtOnce == 0);
  constexpr int64_t kShared = kSamples * static_cast<int64_t>(sizeof(ColumnSample) + sizeof(BilinearSlopes)) + 32;
  const int64_t each = s.deform_channels(), tiles = BlocksFor(range.count, kSamples);
  const Divider by_tiles(tiles), by_points(s.points()), by_groups(s.deform_groups);
  const auto spread = [=] POLYOP_DEVICE(Block& block) {
    // Where packs of sums are added by single additions, neighbouring lanes have neighbouring channels instead.
    constexpr int kUsed = kAddsPacksAtomically ? kWide : 1;
    ColumnSample* const samples = block.Shared<ColumnSample>(kSamples);
    BilinearSlopes* const slopes = block.Shared<BilinearSlopes>(kSamples);
    int64_t tile, point, deform_group;
    const int64_t image = by_groups.Split(by_points.Split(by_tiles.Split(block.index, &tile), &point), &deform_group);
    const int64_t pixel = tile * kSamples, rest = range.count - pixel, n = range.image + image;
    const int held = rest < kSamples ? static_cast<int>(rest) : kSamples;
    const int64_t plane = s.height * s.width * s.channels, of_pixel = s.channels * s.points();
    const T* const from = visits.by_pixels != nullptr ? visits.by_pixels + n * plane : nullptr;
    float* const to = visits.sums != nullptr ? visits.sums + image * plane : nullptr;
    block.ForThreads([&](int t) {
      if (t < held) samples[t] = ColumnSample::Of(tensors.Taps(s, n, deform_group, point, range.first + pixel + t), s);
    });
    block.ForWarps([&](int warp) {
      for (int first = warp * kOfWarp; first < (warp + 1) * kOfWarp && first < held; first += kAtOnce) {
        Lanes<BilinearSlopes> parts;
        ForLanes([&](int lane) {
          const int i = first + lane / kLanes;
          parts[lane] = BilinearSlopes();
          if (i >= held) return;
          parts[lane] = visits.template Visit<kUsed, kLanes>(samples[i], lane % kLanes, deform_group * each,
                                                             (deform_group + 1) * each, point,
                                                             (image * range.count + pixel + i) * of_pixel, from, to);
        });
        if (!visits.sloped) continue;
        parts.template Sum<1, kLanes>(
            [](const BilinearSlopes& a, const BilinearSlopes& b) { return BilinearSlopes::Sum(a, b); });
        ForLanes([&](int lane) {
          const int i = first + lane / kLanes;
          if (lane % kLanes == 0 && i < held) slopes[i] = parts[lane];
        });
      }
    });
    if (!visits.sloped) return;
    block.ForThreads([&](int t) {
      if (t < held) tensors.WriteSlopes(s, n, deform_group, point, range.first + pixel + t, slopes[t]);
    });
  };
  return ForBlocks(cuda, range.images * s.deform_groups * s.points() * tiles, kThreadsPerBlock, kShared, spread);
}

template <class T>
Status SpreadColumns(const CudaContext& cuda, const Sizes& s, const BackwardTensors<T>& tensors,
                     const PixelRange& range, const ColumnVisits<T>& visits) {
  constexpr int kWide = 4;
  const bool wide = s.deform_channels() % kWide == 0 && s.group_channels() % kWide == 0;
  const auto spread = !wide                                      ? SpreadBy<1, kWarpLanes, T>
                      : s.deform_channels() < kWarpLanes * kWide ? SpreadBy<kWide, 8, T>
                                                                 : SpreadBy<kWide, kWarpLanes, T>;
  return spread(cuda, s, tensors, range, visits);
}

// Rounds sums [filters][points][channels] to [filters][channels][points].
template <class T>
Status RoundWeights(const CudaContext& cuda, const Sizes& s, const SplitSums& sums, T* grad_weight) {
  const int64_t points = s.points(), channels = s.group_channels();
  const Divider by_channels(channels), by_points(points);
  return ForEach(cuda, sums.count, [=] POLYOP_DEVICE(int64_t i) {
    int64_t channel, point;
    const int64_t filter = by_points.Split(by_channels.Split(i, &channel), &point);
    grad_weight[(filter * channels + channel) * points + point] = FromFloat<T>(sums.Sum(i));
  });
}

template <class T>
class ColumnsBackward {
 public:
  // Computes the gradients that exist of input, offsets, masks and weights. *done tells whether they are complete:
  // otherwise the library does not support a product, or there is too little scratch. Requires: HasColumns; the copy
  // `by_pixels`.
  static Status Run(const CudaContext& cuda, const Sizes& s, int64_t batch, const BackwardTensors<T>& tensors,
                    const DeformConvGradientsCuda<T>& gradients, bool* done) {
    *done = false;
    const ColumnsBackward call(cuda, s, batch, tensors, gradients);
    if (cuda.measuring() || !cuda.Check().ok()) return Status::Ok();
    return call.Compute(gradients, done);
  }

 private:
  static constexpr int64_t kDepth = 1024;  // output pixels of a part of an image for the gradients of weights

  ColumnsBackward(const CudaContext& cuda, const Sizes& s, int64_t batch, const BackwardTensors<T>& tensors,
                  const DeformConvGradientsCuda<T>& gradients)
      : cuda_(cuda),
        s_(s),
        batch_(batch),
        of_pixel_(s.channels * s.points()),
        of_group_(s.group_channels() * s.points()),
        plane_(s.height * s.width),
        tensors_(tensors),
        sloped_(gradients.offset || gradients.mask) {
    const bool spread = gradients.input || sloped_, sampled = gradients.weight.has_value();
    parts_ = ColumnParts::Of(s, batch, of_pixel_, (spread ? sizeof(float) : 0) + (sampled ? sizeof(T) : 0));
    workspace_ = cuda.Allocate<char>(LibraryProduct::kWorkspaceBytes);
    if (spread) {
      grads_ = cuda.Allocate<float>(parts_.elements);
      by_points_ = cuda.Allocate<T>(s.filters * of_group_);
    }
    if (gradients.input && plane_ > 0) {
      // The size of the scratch must not shrink when extents grow.
      const int64_t image = plane_ * s.channels, most = std::max(kMaxScratchSums, image);
      parts_.images = std::min(parts_.images, most / image);
      sums_ = cuda.Allocate<float>(std::min(batch * image, most));
    }
    if (sampled) {
      constexpr int64_t kTile = 128;  // of the library
      columns_ = cuda.Allocate<T>(parts_.elements);
      const int64_t tiles = s.groups * BlocksFor(s.group_filters(), kTile) * BlocksFor(of_group_, kTile);
      weight_sums_ = SplitSums::Allocate(cuda, s.filters * of_group_, tiles, std::max(batch, s.out_pixels / kDepth));
      const int64_t at_once = std::max<int64_t>(parts_.images, parts_.pixels / kDepth);
      weight_sums_.parts = std::min(weight_sums_.parts, at_once);
    }
  }

  Status Compute(const DeformConvGradientsCuda<T>& gradients, bool* done) const {
    if (grads_ != nullptr) {
      POLYOP_RETURN_IF_ERROR(
          Transpose(cuda_, s_.filters, s_.group_channels(), s_.points(), tensors_.weight, by_points_, of_group_));
    }
    if (columns_ != nullptr) {
      POLYOP_RETURN_IF_ERROR(ClearSums(cuda_, weight_sums_.sums, weight_sums_.parts * weight_sums_.count));
    }
    const ColumnVisits<T> visits{.by_pixels = sloped_ || columns_ != nullptr ? tensors_.by_pixels : nullptr,
                                 .grads = grads_,
                                 .columns = columns_,
                                 .sums = sums_,
                                 .sloped = sloped_,
                                 .points = s_.points(),
                                 .group_channels = s_.group_channels(),
                                 .by_group_channels = Divider(s_.group_channels())};
    const int64_t image = plane_ * s_.channels;
    for (int64_t n = 0; n < batch_; n += parts_.images) {
      const int64_t images = std::min(parts_.images, batch_ - n);
      if (sums_ != nullptr) POLYOP_RETURN_IF_ERROR(ClearSums(cuda_, sums_, images * image));
      for (int64_t first = 0; first < s_.out_pixels; first += parts_.pixels) {
        const PixelRange range{n, images, first, std::min(parts_.pixels, s_.out_pixels - first)};
        if (grads_ != nullptr && !MultiplyWeights(range)) return Status::Ok();
        POLYOP_RETURN_IF_ERROR(SpreadColumns(cuda_, s_, tensors_, range, visits));
        if (columns_ != nullptr && !MultiplyColumns(range)) return Status::Ok();
      }
      if (sums_ == nullptr) continue;
      POLYOP_RETURN_IF_ERROR(
          Transpose(cuda_, images, plane_, s_.channels, sums_, gradients.input->data() + n * image, image));
    }
    if (columns_ != nullptr) POLYOP_RETURN_IF_ERROR(RoundWeights(cuda_, s_, weight_sums_, gradients.weight->data()));
    *done = true;
    return Status::Ok();
  }

  const T* GradOutput(int64_t image, int64_t filter, int64_t pixel) const {
    return tensors_.grad_output + (image * s_.filters + filter) * s_.out_pixels + pixel;
  }

  // Writes the gradients of columns.
  bool MultiplyWeights(const PixelRange& range) const {
    for (int64_t group = 0; group < s_.groups; ++group) {
      const int64_t filter = group * s_.group_filters();
      const LibraryProduct product{
          .type = LibraryProduct::kTypeOf<T>,
          .c_type = LibraryProduct::Type::kF32,
          .count = range.images,
          .rows = range.count,
          .columns = of_group_,
          .depth = s_.group_filters(),
          .a = {GradOutput(range.image, filter, range.first), s_.out_pixels, s_.filters * s_.out_pixels},
          .b = {by_points_ + filter * of_group_, of_group_, 0},
          .a_transposed = true,
          .c = grads_ + group * of_group_,
          .c_row_step = of_pixel_,
          .c_matrix_step = range.count * of_pixel_,
          .adds = false};
      if (!product.Launch(cuda_, workspace_)) return false;
    }
    return true;
  }

  // Adds to the gradients of weights. A product computes those of whole images, or of parts of one if these are more.
  bool MultiplyColumns(const PixelRange& range) const {
    const int64_t parts = range.count / kDepth, rest = range.count - parts * kDepth;
    if (range.images >= parts) {
      return AddWeights(range.images, range.count, GradOutput(range.image, 0, range.first), s_.filters * s_.out_pixels,
                        columns_, range.count * of_pixel_);
    }
    for (int64_t i = 0; i < range.images; ++i) {
      const T* const grad = GradOutput(range.image + i, 0, range.first);
      const T* const columns = columns_ + i * range.count * of_pixel_;
      const bool added =
          AddWeights(parts, kDepth, grad, kDepth, columns, kDepth * of_pixel_) &&
          (rest == 0 || AddWeights(1, rest, grad + parts * kDepth, 0, columns + parts * kDepth * of_pixel_, 0));
      if (!added) return false;
    }
    return true;
  }

  // Adds the products of `count` pairs of matrices of `depth` output pixels.
  bool AddWeights(int64_t count, int64_t depth, const T* grad, int64_t grad_step, const T* columns,
                  int64_t column_step) const {
    for (int64_t i = 0; i < count; i += weight_sums_.parts) {
      for (int64_t group = 0; group < s_.groups; ++group) {
        const int64_t filter = group * s_.group_filters();
        const LibraryProduct product{.type = LibraryProduct::kTypeOf<T>,
                                     .c_type = LibraryProduct::Type::kF32,
                                     .count = std::min(weight_sums_.parts, count - i),
                                     .rows = s_.group_filters(),
                                     .columns = of_group_,
                                     .depth = depth,
                                     .a = {grad + i * grad_step + filter * s_.out_pixels, s_.out_pixels, grad_step},
                                     .b = {columns + i * column_step + group * of_group_, of_pixel_, column_step},
                                     .c = weight_sums_.sums + filter * of_group_,
                                     .c_row_step = of_group_,
                                     .c_matrix_step = weight_sums_.count,
                                     .adds = true};
        if (!product.Launch(cuda_, workspace_)) return false;
      }
    }
    return true;
  }

  const CudaContext& cuda_;
  const Sizes s_;
  const int64_t batch_, of_pixel_, of_group_, plane_;
  const BackwardTensors<T> tensors_;
  const bool sloped_;
  ColumnParts parts_;
  char* workspace_ = nullptr;
  float *grads_ = nullptr, *sums_ = nullptr;
  T *columns_ = nullptr, *by_points_ = nullptr;  // weights [filters][points][channels of a group]
  SplitSums weight_sums_ = {};
};

}  // namespace deform_conv_internal
}  // namespace polyop
