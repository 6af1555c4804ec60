// SPDX-License-Identifier: Apache-2.0
// A deformable convolution is a product of samples and filters. The image is copied with channels last, so that the
// lanes of a vector are channels of a pixel. An item of the parallel loop is a tile of output pixels of one image. The
// samples of a few points of the kernel are written for all pixels of the tile as rows, called columns, and multiplied
// by the filters while they are in the cache; the samples of a whole image would not fit. The task's sums become the
// output after the last point.
#include "ops/deform/deform_conv.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/deform_conv.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/deform/deform_conv_shape.h"
#include "ops/sampling/zero_padded_sample.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// All sizes of one call. A column holds the samples of points_at_once() points of the kernel for one output pixel.
// Within a point, deform groups are padded to whole blocks of channels; ChannelOffset is a channel's offset there.
struct DeformConvSizes : DeformConvShape {
  int64_t deform_blocks() const { return ChannelBlocks::BlocksFor(deform_channels()); }
  int64_t padded_channels() const { return deform_groups * deform_blocks() * kBlockChannels; }
  // Number of points that are sampled and multiplied at once, so that a column has a few hundred values.
  int64_t points_at_once() const {
    constexpr int64_t kValues = 512;
    return std::clamp<int64_t>(kValues / std::max<int64_t>(padded_channels(), 1), 1, std::max<int64_t>(points(), 1));
  }
  int64_t column() const { return points_at_once() * padded_channels(); }
  int64_t ChannelOffset(int64_t channel) const {
    return channel / deform_channels() * deform_blocks() * kBlockChannels + channel % deform_channels();
  }
};

// The pixels of a sample; their weights include the mask.
struct SampleTaps {
  int64_t pixel[4];
  float weight[4];
  int count = 0;
};

inline SampleTaps FindSample(float y, float x, float mask, int64_t height, int64_t width) {
  SampleTaps taps;
  ForEachZeroPaddedTap(y, x, height, width, mask, [&](int, int64_t pixel, float weight) {
    taps.pixel[taps.count] = pixel;
    taps.weight[taps.count++] = weight;
  });
  return taps;
}

// Computes one sample for all channels of a deform group. Requires: `channels` is a multiple of the block.
template <int kCount, class Element>
HWY_INLINE void SampleBlocks(const SampleTaps& taps, const Element* image, int64_t channels, float* to) {
  const Element* pixels[kCount];
  for (int k = 0; k < kCount; ++k) pixels[k] = image + taps.pixel[k] * channels;
  for (int64_t c = 0; c < channels; c += kBlockChannels) {
    BlockSum sum;
    sum.Fill(0);
    for (int k = 0; k < kCount; ++k) sum.Add(pixels[k] + c, taps.weight[k]);
    sum.Store(1.0f, to + c);
  }
}
template <class Element>
void SampleBlocks(const SampleTaps& taps, const Element* image, int64_t channels, float* to) {
  switch (taps.count) {
    case 0: std::fill_n(to, channels, 0.0f); break;
    case 1: SampleBlocks<1>(taps, image, channels, to); break;
    case 2: SampleBlocks<2>(taps, image, channels, to); break;
    case 3: SampleBlocks<3>(taps, image, channels, to); break;
    default: SampleBlocks<4>(taps, image, channels, to);
  }
}

// Fills the columns of the kernel's points [begin, end) for output pixels [first, first + count).
template <class Element, class T>
void SampleColumns(const DeformConvSizes& s, const Element* images, const T* offset, const T* mask, int64_t n,
                   int64_t first, int64_t count, int64_t begin, int64_t end, float* columns) {
  for (int64_t p = 0; p < count; ++p) {
    const int64_t at = first + p, oy = at / s.out_width, ox = at % s.out_width;
    for (int64_t g = 0; g < s.deform_groups; ++g) {
      const Element* image = images + (n * s.deform_groups + g) * s.pixels() * s.deform_blocks() * kBlockChannels;
      float* to = columns + p * s.column() + g * s.deform_blocks() * kBlockChannels;
      for (int64_t k = begin; k < end; ++k, to += s.padded_channels()) {
        const int64_t sample = (n * s.deform_groups + g) * s.points() + k;
        const float dy = ToFloat(offset[2 * sample * s.out_pixels() + at]),
                    dx = ToFloat(offset[(2 * sample + 1) * s.out_pixels() + at]);
        const float y = s.Row(oy, k) + dy, x = s.Column(ox, k) + dx;
        const SampleTaps taps =
            FindSample(y, x, mask ? ToFloat(mask[sample * s.out_pixels() + at]) : 1.0f, s.height, s.width);
        SampleBlocks(taps, image, s.deform_blocks() * kBlockChannels, to);
      }
    }
  }
}

// Initialises the sums [group][tile][sum_stride] of `rows` pixels with the bias.
template <class T>
void InitWithBias(const DeformConvSizes& s, const T* bias, int64_t rows, int64_t tile, int64_t sum_stride,
                  float* sums) {
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t r = 0; r < rows; ++r) {
      float* const to = sums + (g * tile + r) * sum_stride;
      for (int64_t o = 0; o < s.group_outputs(); ++o) to[o] = ToFloat(bias[g * s.group_outputs() + o]);
    }
  }
}

// Weights of 8 bits, of which filter o is a multiple of scales[o].
struct ScaledWeights {
  const int8_t* data;
  const float* scales;

  float At(int64_t filter, int64_t index) const { return static_cast<float>(data[index]) * scales[filter]; }
};
template <class T>
struct PlainWeights {
  const T* data;

  float At(int64_t, int64_t index) const { return ToFloat(data[index]); }
};

// T is the type of images and results, R that of the other tensors.
template <class T, class Weights, class R>
Status ConvolveBy(const Context& context, const DeformConvRule& rule, const Tensor<const T, 4>& input, const R* offset,
                  const R* mask, const Shape& weight_shape, const Weights& weight, const R* bias,
                  const Tensor<T, 4>& output, const Requantize<T>& codes) {
  using Element = std::conditional_t<std::is_same_v<T, Q8>, BFloat16, float>;  // of the copied image
  const DeformConvSizes s{DeformConvShape::Of(rule, input.shape(), weight_shape, output.shape())};
  if (s.column() > INT32_MAX)
    return InvalidArgument("'weight': expected a column of at most 2147483647 values, got ", s.column());

  // A tile's columns and sums fit into half of a small L2 cache, next to the weights of the current points. Weights are
  // read once per tile, so large tiles are better, but there must be enough tiles for several threads.
  constexpr int64_t kTileFloats = 1 << 16, kTiles = 16;
  const int64_t column = std::max<int64_t>(s.column(), 1);
  const GemmColumns filters(s.group_outputs());
  const int64_t sum_stride = filters.stride(), packed_group = sum_stride * s.depth();
  const int64_t group_sums = s.groups * sum_stride;
  const int64_t max_blocks =
      std::min(kTileFloats / (column + group_sums), s.batch * s.out_pixels() / kTiles) / kGemmRows;
  const int64_t tile = std::clamp<int64_t>(max_blocks, 1, 16) * kGemmRows;
  const int64_t tiles = (s.out_pixels() + tile - 1) / tile, items = s.batch * tiles;
  const double flops = 2.0 * static_cast<double>(tile * s.depth()) * static_cast<double>(s.outputs);
  const double sampled = static_cast<double>(tile * s.points()) * static_cast<double>(s.padded_channels());
  const int64_t grain = GrainFor(flops / 60 + sampled / 4);
  const int64_t scratch = tile * (column + group_sums);
  const int64_t copied = ChannelBlocks::ElementsFor(s.batch * s.deform_groups, s.deform_channels(), s.pixels());
  const Scratch<Element> copy = context.Allocate<Element>(copied);
  const Scratch<float> packed = context.Allocate<float>(s.groups * packed_group);
  const Scratch<int32_t> k_offsets = context.Allocate<int32_t>(s.groups * s.depth());
  if (!copy || !packed || !k_offsets)
    return Internal("out of memory: scratch for an input of ", s.channels, " channels");

  ToChannelsLast(context, input.data(), s.batch * s.deform_groups, s.deform_channels(), s.pixels(), copy.data(), codes);
  for (int64_t g = 0; g < s.groups; ++g) {  // point by point, so that neighbours in a column are neighbours in k
    int32_t* k_offset = k_offsets.data() + g * s.depth();
    for (int64_t point = 0; point < s.points(); ++point) {
      for (int64_t c = 0; c < s.group_channels(); ++c) {
        *k_offset++ = static_cast<int32_t>(point % s.points_at_once() * s.padded_channels() +
                                           s.ChannelOffset(g * s.group_channels() + c));
      }
    }
  }
  const int64_t panels = filters.panels(), panel_size = s.depth() * filters.panel();
  context.ParallelFor(s.groups * panels, GrainFor(static_cast<double>(panel_size)), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t g = item / panels;
      const auto fill = [&](int64_t o, float* to, int64_t stride) {
        const int64_t filter = g * s.group_outputs() + o;
        int64_t from = filter * s.depth();
        for (int64_t c = 0; c < s.group_channels(); ++c) {
          for (int64_t point = 0; point < s.points(); ++point) {
            to[(point * s.group_channels() + c) * stride] = weight.At(filter, from++);
          }
        }
      };
      PackPanel(filters, item % panels, s.depth(), fill, packed.data() + item * panel_size);
    }
  });

  const auto convolve = [&](float* columns, int64_t begin, int64_t end) HWY_ATTR {
    float* const sums = columns + tile * column;
    std::fill_n(columns, tile * column, 0.0f);  // rows after the last pixel are multiplied too
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / tiles, first = item % tiles * tile, count = std::min(tile, s.out_pixels() - first);
      const int64_t rows = (count + kGemmRows - 1) / kGemmRows * kGemmRows;
      std::fill_n(sums, tile * group_sums, 0.0f);
      if (bias != nullptr) InitWithBias(s, bias, rows, tile, sum_stride, sums);
      for (int64_t point = 0; point < s.points(); point += s.points_at_once()) {
        const int64_t last = std::min(s.points(), point + s.points_at_once()), done = point * s.group_channels();
        SampleColumns(s, copy.data(), offset, mask, n, first, count, point, last, columns);
        for (int64_t g = 0; g < s.groups; ++g) {
          AddGemmTile(columns, rows, column, k_offsets.data() + g * s.depth() + done,
                      (last - point) * s.group_channels(), packed.data() + g * packed_group + done * filters.panel(),
                      panel_size, filters, sums + g * tile * sum_stride, sum_stride);
        }
      }
      for (int64_t g = 0; g < s.groups; ++g) {
        WriteChannels(sums + g * tile * sum_stride, count, s.group_outputs(), s.out_pixels(),
                      output.data() + (n * s.outputs + g * s.group_outputs()) * s.out_pixels() + first, sum_stride,
                      codes);
      }
    }
  };
  if (context.ParallelForWithScratch<float>(items, grain, scratch, convolve)) return Status::Ok();
  return Internal("out of memory: columns of ", s.channels, " channels");
}

template <class T>
Status Convolve(const Context& context, const DeformConvRule& rule, const Tensor<const T, 4>& input, const T* offset,
                const T* mask, const Tensor<const T, 4>& weight, const T* bias, const Tensor<T, 4>& output) {
  const PlainWeights<T> plain{weight.data()};
  return ConvolveBy(context, rule, input, offset, mask, weight.shape(), plain, bias, output, {});
}

Status ConvolveCodes(const Context& context, const DeformConvRule& rule, const Tensor<const Q8, 4>& input,
                     const float* offset, const float* mask, const Tensor<const int8_t, 4>& weight,
                     const float* weight_scale, const float* bias, const Requantize<Q8>& codes,
                     const Tensor<Q8, 4>& output) {
  const ScaledWeights scaled{weight.data(), weight_scale};
  return ConvolveBy(context, rule, input, offset, mask, weight.shape(), scaled, bias, output, codes);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(Convolution, Convolve);

template <class T>
Status DeformConv(const Context& context, const DeformConvRule& rule, const Tensor<const T, 4>& input, const T* offset,
                  const T* mask, const Tensor<const T, 4>& weight, const T* bias, const Tensor<T, 4>& output) {
  return POLYOP_SIMD(Convolution, T)(context, rule, input, offset, mask, weight, bias, output);
}
POLYOP_FOR_FLOATS(DeformConv);

HWY_EXPORT(ConvolveCodes);
Status DeformConvOfCodes(const Context& context, const DeformConvRule& rule, const Tensor<const Q8, 4>& input,
                         const float* offset, const float* mask, const Tensor<const int8_t, 4>& weight,
                         const float* weight_scale, const float* bias, const Requantize<Q8>& codes,
                         const Tensor<Q8, 4>& output) {
  return HWY_DYNAMIC_DISPATCH(ConvolveCodes)(context, rule, input, offset, mask, weight, weight_scale, bias, codes,
                                             output);
}
}  // namespace polyop
#endif
