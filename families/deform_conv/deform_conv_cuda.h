// Deformable convolution on the GPU: a block gathers a tile of samples into shared memory and multiplies it with the
// weights there, f16 and bf16 on tensor cores. There is no column buffer, but a copy of the input whose channels are
// neighbours in memory, so that threads with neighbouring channels load the same pixels.
#pragma once

#include "families/deform_conv/deform_conv_rule.h"
#include "families/sampling/zero_padded_sample.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/tile_product.h"
#include "kernels/cuda/transpose.h"

namespace polyop {

namespace deform_conv_internal {

inline constexpr int64_t kFew = 16;  // filters of a group from which on tiles are multiplied

struct Sizes {
  int64_t channels, height, width, filters, kernel_height, kernel_width, out_width, out_pixels;
  int64_t groups, deform_groups;
  int64_t stride[2], padding[2], dilation[2];

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
            {op.dilation[0], op.dilation[1]}};
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
  const int64_t row = out / s.out_width * s.stride[0] - s.padding[0] + point / s.kernel_width * s.dilation[0];
  const int64_t column = out % s.out_width * s.stride[1] - s.padding[1] + point % s.kernel_width * s.dilation[1];
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
  const auto sizes = deform_conv_internal::Sizes::Of(op, input.shape(), weight.shape(), output.shape());
  const auto convolve = sizes.group_filters() < deform_conv_internal::kFew ? deform_conv_internal::ConvolveFew<T>
                                                                           : deform_conv_internal::ConvolveTiles<T>;
  return convolve(cuda, sizes, output.dim(0), input.data(), offset, mask, weight.data(), bias, output.data());
}

}  // namespace polyop
