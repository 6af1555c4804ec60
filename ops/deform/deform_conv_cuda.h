// SPDX-License-Identifier: Apache-2.0
// Deformable convolution on the GPU. If the process has cuBLASLt, the samples of some images, or of a part of one, are
// written to columns, which it multiplies with the weights. Otherwise a block gathers a tile of samples into shared
// memory and multiplies it with the weights there, f16 and bf16 on tensor cores; it reads a copy of the input whose
// channels are neighbours in memory, so that threads with neighbouring channels load the same pixels.
//
// An input of 2x256x64x64 and 256 filters of 3x3 are 9.7 billion products of 8,192 pixels and 2,304 samples each. On an
// H200, cuBLAS needs 0.19 ms for them in f32 and 0.013 ms in f16. The columns, 75 MB in f32, are written in 0.02 ms and
// read from L2 in part, and sampling takes 22 million instructions of a warp, 0.03 ms: about 0.26 ms, and 0.07 in f16.
#pragma once

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/library_product.h"
#include "kernels/cuda/tile_product.h"
#include "kernels/cuda/transpose.h"
#include "ops/deform/deform_conv_rule.h"
#include "ops/sampling/zero_padded_sample.h"

namespace polyop {

namespace deform_conv_internal {

inline constexpr int64_t kFew = 16;  // filters of a group from which on tiles are multiplied

struct Sizes {
  int64_t channels, height, width, filters, kernel_height, kernel_width, out_width, out_pixels;
  int64_t groups, deform_groups;
  int64_t stride[2], padding[2], dilation[2];
  Divider by_out_width, by_kernel_width;

  static Sizes Of(const DeformConvRule& op, const Shape& input, const Shape& weight, const Shape& output) {
    return {input[1],
            input[2],
            input[3],
            weight[0],
            weight[2],
            weight[3],
            output[3],
            output[2] * output[3],
            op.groups,
            op.deform_groups,
            {op.stride[0], op.stride[1]},
            {op.padding[0], op.padding[1]},
            {op.dilation[0], op.dilation[1]},
            Divider(output[3]),
            Divider(weight[3])};
  }

  POLYOP_HD int64_t points() const { return kernel_height * kernel_width; }
  POLYOP_HD int64_t group_channels() const { return channels / groups; }
  POLYOP_HD int64_t group_filters() const { return filters / groups; }
  POLYOP_HD int64_t deform_channels() const { return channels / deform_groups; }
};

template <class T>
POLYOP_HD float ValueOf(const ZeroPaddedSample& sample, const T* plane) {
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    if (sample.pixel[k] >= 0) sum = std::fma(ToFloat(plane[sample.pixel[k]]), sample.weight[k], sum);
  }
  return sum;
}

// The same, without branches, for a channel of pixels that are `step` elements apart. Requires: `sample` is aligned to
// 16 bytes; `pixels` can be read.
template <class T>
POLYOP_HD float ValueOfPixels(const ZeroPaddedSample* sample, const T* pixels, int64_t step) {
  const auto* const aligned = static_cast<const ZeroPaddedSample*>(__builtin_assume_aligned(sample, 16));
  int32_t pixel[4];
  float weight[4], value[4];
  for (int k = 0; k < 4; ++k) pixel[k] = aligned->pixel[k];
  for (int k = 0; k < 4; ++k) weight[k] = aligned->weight[k];
  for (int k = 0; k < 4; ++k) value[k] = ToFloat(pixels[(pixel[k] >= 0 ? pixel[k] : 0) * step]);
  float sum = 0;
  for (int k = 0; k < 4; ++k) sum = pixel[k] >= 0 ? std::fma(value[k], weight[k], sum) : sum;
  return sum;
}

// A sample's position and its factor.
struct SamplePosition {
  float y, x, factor;
};

// Returns the position of one point of the filter for one output pixel. `offset` and `mask` are those of an image;
// `mask` may be null.
template <class T>
POLYOP_HD SamplePosition FindPosition(const Sizes& s, const T* offset, const T* mask, int64_t deform_group,
                                      int64_t point, int64_t out) {
  const int64_t at = deform_group * s.points() + point;
  int64_t x, right;
  const int64_t y = s.by_out_width.Split(out, &x), down = s.by_kernel_width.Split(point, &right);
  const int64_t row = y * s.stride[0] - s.padding[0] + down * s.dilation[0];
  const int64_t column = x * s.stride[1] - s.padding[1] + right * s.dilation[1];
  return {static_cast<float>(row) + ToFloat(offset[2 * at * s.out_pixels + out]),
          static_cast<float>(column) + ToFloat(offset[(2 * at + 1) * s.out_pixels + out]),
          mask != nullptr ? ToFloat(mask[at * s.out_pixels + out]) : 1.0f};
}

template <class T>
POLYOP_HD ZeroPaddedSample FindSample(const Sizes& s, const T* offset, const T* mask, int64_t deform_group,
                                      int64_t point, int64_t out) {
  const SamplePosition at = FindPosition(s, offset, mask, deform_group, point, out);
  return ZeroPaddedSample::At(at.y, at.x, s.height, s.width, at.factor);
}

// For few filters per group, as in depthwise convolution: one thread per output.
template <class T>
Status ConvolveFew(const CudaContext& cuda, const Sizes& s, int64_t batch, const T* input, const T* offset,
                   const T* mask, const T* weight, const T* bias, T* output) {
  const Divider pixels(s.out_pixels), by_filters(s.filters);
  return ForEach(cuda, batch * s.filters * s.out_pixels, [=] POLYOP_DEVICE(int64_t i) {
    int64_t out, filter;
    const int64_t n = by_filters.Split(pixels.Split(i, &out), &filter);
    const int64_t first = filter / s.group_filters() * s.group_channels();
    const T* const offsets = offset + n * 2 * s.deform_groups * s.points() * s.out_pixels;
    const T* const masks = mask != nullptr ? mask + n * s.deform_groups * s.points() * s.out_pixels : nullptr;
    float sum = bias != nullptr ? ToFloat(bias[filter]) : 0;
    for (int64_t point = 0; point < s.points(); ++point) {
      int64_t found_for = -1;
      ZeroPaddedSample sample;
      for (int64_t c = 0; c < s.group_channels(); ++c) {
        const int64_t deform_group = (first + c) / s.deform_channels();
        if (deform_group != found_for) sample = FindSample(s, offsets, masks, deform_group, point, out);
        found_for = deform_group;
        const float value = ValueOf(sample, input + (n * s.channels + first + c) * s.height * s.width);
        sum = std::fma(value, ToFloat(weight[(filter * s.group_channels() + c) * s.points() + point]), sum);
      }
    }
    output[i] = FromFloat<T>(sum);
  });
}

// Copies the input to scratch memory as [batch][pixels][channels], which can be read also if there are no pixels.
template <class T>
Status CopyByPixels(const CudaContext& cuda, const Sizes& s, int64_t batch, const T* input, const T** copy) {
  const int64_t pixels = s.height * s.width;
  T* const to = cuda.Allocate<T>((batch * pixels + 1) * s.channels);
  *copy = to;
  return Transpose(cuda, batch, s.channels, pixels, input, to, pixels * s.channels);
}

// Copies the weights to scratch memory as [channels][points][filters of a group].
template <class T>
Status CopyByChannels(const CudaContext& cuda, const Sizes& s, const T* weight, const T** copy) {
  const int64_t of_filter = s.group_channels() * s.points();
  T* const to = cuda.Allocate<T>(s.filters * of_filter);
  *copy = to;
  return Transpose(cuda, s.groups, s.group_filters(), of_filter, weight, to, s.group_filters() * of_filter);
}

// Each block computes a tile of filters x pixels of one image and group.
template <class T>
Status ConvolveTiles(const CudaContext& cuda, const Sizes& s, int64_t batch, const T* input, const T* offset,
                     const T* mask, const T* weight, const T* bias, T* output) {
  using Product = TileProduct<T>;
  constexpr int64_t kSamples = Product::kColumns * static_cast<int64_t>(sizeof(ZeroPaddedSample));
  const int64_t pixels = s.height * s.width;
  const T *by_pixels, *by_channels;
  POLYOP_RETURN_IF_ERROR(CopyByPixels(cuda, s, batch, input, &by_pixels));
  POLYOP_RETURN_IF_ERROR(CopyByChannels(cuda, s, weight, &by_channels));
  const auto convolve = [=] POLYOP_DEVICE(Block& block, Product& product, const Tile& tile) {
    ZeroPaddedSample* const samples = block.Shared<ZeroPaddedSample>(Product::kColumns);
    const int64_t n = tile.matrix / s.groups, group = tile.matrix % s.groups;
    const int64_t first_channel = group * s.group_channels(), first_filter = group * s.group_filters() + tile.row;
    const T* const offsets = offset + n * 2 * s.deform_groups * s.points() * s.out_pixels;
    const T* const masks = mask != nullptr ? mask + n * s.deform_groups * s.points() * s.out_pixels : nullptr;
    for (int64_t point = 0; point < s.points(); ++point) {
      int64_t channel = 0;  // in the group
      while (channel < s.group_channels()) {
        // Channels of one deform group share the samples.
        const int64_t deform_group = (first_channel + channel) / s.deform_channels();
        const int64_t rest = (deform_group + 1) * s.deform_channels() - first_channel;
        const int64_t last = rest < s.group_channels() ? rest : s.group_channels();
        block.ForThreads([&](int t) {
          if (t >= Product::kColumns) return;
          samples[t] = t < tile.columns ? FindSample(s, offsets, masks, deform_group, point, tile.column + t)
                                        : ZeroPaddedSample();
        });
        for (; channel < last; channel += Product::kDepth) {
          const int depth = last - channel < Product::kDepth ? static_cast<int>(last - channel) : Product::kDepth;
          const int held = static_cast<int>(tile.rows);
          const int64_t step = s.points() * s.group_filters();
          const T* const from = by_pixels + n * pixels * s.channels + first_channel + channel;
          const T* const rows =
              by_channels + ((first_channel + channel) * s.points() + point) * s.group_filters() + tile.row;
          product.template Add<Product::Order::kAlong, Product::Order::kDeep>(
              [&](int k, int filter) {
                const float value = ToFloat(rows[(k < depth ? k : 0) * step + (filter < held ? filter : 0)]);
                return k < depth && filter < held ? value : 0.0f;
              },
              [&](int k, int pixel) {
                const float value = ValueOfPixels(samples + pixel, from + (k < depth ? k : 0), s.channels);
                return k < depth ? value : 0.0f;
              });
        }
        channel = last;
      }
    }
    product.Store([&](int row, int pixel, float sum) {
      if (row >= tile.rows || pixel >= tile.columns) return;
      const int64_t filter = first_filter + row;
      const float start = bias != nullptr ? ToFloat(bias[filter]) : 0;
      output[(n * s.filters + filter) * s.out_pixels + tile.column + pixel] = FromFloat<T>(sum + start);
    });
  };
  return ForTiles<T>(cuda, batch * s.groups, s.group_filters(), s.out_pixels, kSamples, convolve);
}

// Writes the samples of the output pixels [first, first + count) of some images to
// columns[images][channels][points][count]. A thread uses a sample for several channels.
template <class T>
Status SampleColumns(const CudaContext& cuda, const Sizes& s, int64_t images, int64_t first, int64_t count,
                     const T* input, const T* offset, const T* mask, T* columns) {
  constexpr int64_t kChannels = 16, kAhead = 4;  // of which kAhead are loaded before the first is written
  const int64_t pixels = s.height * s.width, each = s.deform_channels(), all = s.deform_groups * s.points();
  const Divider by_count(count), by_points(s.points()), parts(BlocksFor(each, kChannels)), by_group(s.deform_groups);
  const int64_t samples = images * s.deform_groups * BlocksFor(each, kChannels) * s.points() * count;
  return ForEach(cuda, samples, [=] POLYOP_DEVICE(int64_t i) {
    int64_t out, point, part, deform_group;
    const int64_t n =
        by_group.Split(parts.Split(by_points.Split(by_count.Split(i, &out), &point), &part), &deform_group);
    const T* const masks = mask != nullptr ? mask + n * all * s.out_pixels : nullptr;
    alignas(16) const ZeroPaddedSample sample =
        FindSample(s, offset + n * 2 * all * s.out_pixels, masks, deform_group, point, first + out);
    const int64_t begin = part * kChannels, end = begin + kChannels < each ? begin + kChannels : each;
    const int64_t channel = n * s.channels + deform_group * each;
    const T* const planes = input + channel * pixels;
    T* const to = columns + (channel * s.points() + point) * count + out;
    for (int64_t c = begin; c < end; c += kAhead) {
      float value[kAhead] = {};
      for (int k = 0; k < kAhead && pixels > 0; ++k) {
        value[k] = ValueOfPixels(&sample, planes + (c + k < end ? c + k : begin) * pixels, 1);
      }
      for (int k = 0; k < kAhead; ++k) {
        if (c + k < end) to[(c + k) * s.points() * count] = FromFloat<T>(value[k]);
      }
    }
  });
}

// The columns of some output pixels at a time: of `images` images if they are few, else of `pixels` pixels of an image.
struct ColumnParts {
  int64_t elements;  // of the columns at a time
  int64_t images, pixels;

  // The columns of a pixel have `of_pixel` elements of `bytes` bytes. Those of kMinPixels pixels are held in any case.
  // Requires: there are output pixels, of_pixel > 0.
  static ColumnParts Of(const Sizes& s, int64_t batch, int64_t of_pixel, size_t bytes) {
    constexpr int64_t kMinPixels = 64, kStep = 8;
    const int64_t fit = cuda_emulation::library_matrix_bytes / static_cast<int64_t>(bytes);
    // The size of the scratch must not shrink when extents grow.
    const int64_t most = std::max(fit, kMinPixels * of_pixel), at_once = most / of_pixel;
    // Parts of an image have nearly equal size, a multiple of 16 bytes.
    const int64_t parts = BlocksFor(s.out_pixels, at_once);
    const int64_t part = std::min(BlocksFor(BlocksFor(s.out_pixels, parts), kStep) * kStep, at_once);
    return {std::min(batch * s.out_pixels * of_pixel, most), std::clamp<int64_t>(at_once / s.out_pixels, 1, batch),
            parts == 1 ? s.out_pixels : part};
  }
};

// Returns whether the library should multiply columns.
inline bool HasColumns(const Sizes& s, int64_t batch) {
  constexpr int64_t kMaxGroups = 8;
  if (s.groups > kMaxGroups || s.group_channels() * s.points() == 0 || batch * s.out_pixels == 0) return false;
  return LibraryProduct::Available();
}

// Multiplies columns by the library, if the process has it: *done tells whether the output is complete.
template <class T>
Status ConvolveColumns(const CudaContext& cuda, const Sizes& s, int64_t batch, const T* input, const T* offset,
                       const T* mask, const T* weight, const T* bias, T* output, bool* done) {
  *done = false;
  if (!HasColumns(s, batch)) return cuda.Check();
  const int64_t depth = s.group_channels() * s.points(), of_pixel = s.channels * s.points();
  const ColumnParts parts = ColumnParts::Of(s, batch, of_pixel, sizeof(T));
  // An engine may have been built by a process without the library, so its scratch may be too small.
  CudaContext attempt = cuda;
  T* const columns = attempt.Allocate<T>(parts.elements);
  char* const workspace = attempt.Allocate<char>(LibraryProduct::kWorkspaceBytes);
  if (!attempt.Check().ok()) return cuda.Check();
  if (cuda.measuring()) {
    cuda.Allocate<T>(parts.elements);
    cuda.Allocate<char>(LibraryProduct::kWorkspaceBytes);
    return cuda.Check();
  }
  if (bias != nullptr) {
    const Divider pixels(s.out_pixels), filters(s.filters);
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, batch * s.filters * s.out_pixels, [=] POLYOP_DEVICE(int64_t i) {
      int64_t filter;
      filters.Split(pixels.Quotient(i), &filter);
      output[i] = bias[filter];
    }));
  }
  for (int64_t n = 0; n < batch; n += parts.images) {
    const int64_t some = std::min(parts.images, batch - n), of_offsets = s.deform_groups * s.points() * s.out_pixels;
    for (int64_t first = 0; first < s.out_pixels; first += parts.pixels) {
      const int64_t count = std::min(parts.pixels, s.out_pixels - first);
      POLYOP_RETURN_IF_ERROR(SampleColumns(cuda, s, some, first, count, input + n * s.channels * s.height * s.width,
                                           offset + 2 * n * of_offsets,
                                           mask != nullptr ? mask + n * of_offsets : nullptr, columns));
      for (int64_t group = 0; group < s.groups; ++group) {
        const int64_t filter = group * s.group_filters();
        const LibraryProduct product{.type = LibraryProduct::kTypeOf<T>,
                                     .c_type = LibraryProduct::kTypeOf<T>,
                                     .count = some,
                                     .rows = s.group_filters(),
                                     .columns = count,
                                     .depth = depth,
                                     .a = {weight + filter * depth, depth, 0},
                                     .b = {columns + group * depth * count, count, of_pixel * count},
                                     .c = output + (n * s.filters + filter) * s.out_pixels + first,
                                     .c_row_step = s.out_pixels,
                                     .c_matrix_step = s.filters * s.out_pixels,
                                     .adds = bias != nullptr};
        if (!product.Launch(cuda, workspace)) return cuda.Check();
      }
    }
  }
  *done = true;
  return Status::Ok();
}

}  // namespace deform_conv_internal

/// Checks that 32 bits can index the pixels of a plane.
inline Status CheckDeformConvPixels(const Shape& input) {
  if (input[3] == 0 || input[2] <= INT32_MAX / input[3]) return Status::Ok();
  return InvalidArgument("'input': expected at most 2147483647 pixels per plane, got shape ", ToString(input));
}

/// `mask` (version 2) and `bias` may be null.
template <class T>
Status DeformConvCuda(const DeformConvRule& op, const CudaContext& cuda, const Tensor<const T, 4>& input,
                      const T* offset, const T* mask, const Tensor<const T, 4>& weight, const T* bias,
                      const Tensor<T, 4>& output) {
  POLYOP_RETURN_IF_ERROR(CheckDeformConvPixels(input.shape()));
  namespace internal = deform_conv_internal;
  const auto sizes = internal::Sizes::Of(op, input.shape(), weight.shape(), output.shape());
  const int64_t batch = output.dim(0);
  if (sizes.group_filters() < internal::kFew) {
    return internal::ConvolveFew<T>(cuda, sizes, batch, input.data(), offset, mask, weight.data(), bias, output.data());
  }
  bool done = false;
  POLYOP_RETURN_IF_ERROR(internal::ConvolveColumns<T>(cuda, sizes, batch, input.data(), offset, mask, weight.data(),
                                                      bias, output.data(), &done));
  if (done) return Status::Ok();
  return internal::ConvolveTiles<T>(cuda, sizes, batch, input.data(), offset, mask, weight.data(), bias, output.data());
}

}  // namespace polyop
