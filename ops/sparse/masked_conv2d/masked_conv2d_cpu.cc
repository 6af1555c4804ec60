// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse/masked_conv2d/masked_conv2d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/sparse/masked_conv2d/masked_conv2d.h"
#include "ops/sparse/masked_conv2d/masked_pixels.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Gathers the columns of `count` output pixels, [count][channels * points] in the order of the weights. Consecutive
// pixels of the list are near in the image, so within a plane they read the same cache lines. Requires: `positions` has
// space for count * points integers.
template <class T>
void GatherColumns(const MaskedConv2d& op, const Tensor<const T, 4>& features, const Shape& weight,
                   const int64_t* pixels, int64_t count, int64_t out_width, int64_t* positions, float* columns) {
  const int64_t height = features.dim(2), width = features.dim(3), points = weight[2] * weight[3];
  for (int64_t k = 0; k < points; ++k) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t y = pixels[i] / out_width - op.padding[0] + k / weight[3];
      const int64_t x = pixels[i] % out_width - op.padding[1] + k % weight[3];
      positions[k * count + i] = y >= 0 && y < height && x >= 0 && x < width ? y * width + x : -1;
    }
  }
  const int64_t depth = weight[1] * points;
  if (depth == 0) return;  // also if there are many channels
  for (int64_t c = 0; c < weight[1]; ++c) {
    const T* const plane = features.data() + c * height * width;
    for (int64_t k = 0; k < points; ++k) {
      float* const to = columns + c * points + k;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t position = positions[k * count + i];
        to[i * depth] = position >= 0 ? ToFloat(plane[position]) : 0.0f;
      }
    }
  }
}

// Computes the convolution at the pixels of a list.
template <class T>
Status ConvolveListed(const MaskedConv2d& op, const Context& context, const Tensor<const T, 4>& features,
                      const Tensor<const T, 4>& weight, const T* bias, const int64_t* pixels, int64_t count,
                      const Tensor<T, 4>& output) {
  const int64_t outputs = weight.dim(0), points = weight.dim(2) * weight.dim(3), depth = weight.dim(1) * points;
  if (depth > INT32_MAX)
    return InvalidArgument("'weight': expected at most ", INT32_MAX, " values in a filter, got ", depth);
  // Small tiles keep the columns in L2.
  constexpr int64_t kColumnFloats = 1 << 16;
  const int64_t tile = std::clamp<int64_t>(kColumnFloats / std::max<int64_t>(depth, 1) / kGemmRows, 1, 16) * kGemmRows;
  const int64_t tiles = (count + tile - 1) / tile;
  const double work = static_cast<double>(tile * depth) * static_cast<double>(outputs);
  const int64_t grain = GrainFor(work / 30 + static_cast<double>(tile * depth));
  const GemmColumns filters(outputs);
  const int64_t sum_stride = filters.stride(), position_bytes = tile * points * static_cast<int64_t>(sizeof(int64_t));
  const int64_t tile_bytes = position_bytes + tile * (depth + sum_stride) * static_cast<int64_t>(sizeof(float));
  const Scratch<float> packed = context.Allocate<float>(sum_stride * depth);
  const Scratch<int32_t> in_order = context.Allocate<int32_t>(depth);
  if (!packed || !in_order) return Internal("out of memory: scratch for ", outputs, " filters");
  std::iota(in_order.data(), in_order.data() + depth, 0);
  context.ParallelFor(filters.panels(), GrainFor(static_cast<double>(depth * filters.panel())),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t p = begin; p < end; ++p) {
                          const auto fill = [&](int64_t o, float* to, int64_t stride) {
                            const T* const from = weight.data() + o * depth;
                            for (int64_t k = 0; k < depth; ++k) to[k * stride] = ToFloat(from[k]);
                          };
                          PackPanel(filters, p, depth, fill, packed.data() + p * filters.panel() * depth);
                        }
                      });
  const auto convolve = [&](char* memory, int64_t begin, int64_t end) {
    auto* const positions = reinterpret_cast<int64_t*>(memory);
    auto* const columns = reinterpret_cast<float*>(memory + position_bytes);
    float* const sums = columns + tile * depth;
    std::fill_n(columns, tile * depth, 0.0f);  // rows after the last pixel are multiplied as well
    for (int64_t item = begin; item < end; ++item) {
      const int64_t* const tile_pixels = pixels + item * tile;
      const int64_t held = std::min(tile, count - item * tile);
      GatherColumns(op, features, weight.shape(), tile_pixels, held, output.dim(3), positions, columns);
      GemmTile(columns, (held + kGemmRows - 1) / kGemmRows * kGemmRows, depth, in_order.data(), depth, packed.data(),
               filters, sums, sum_stride);
      for (int64_t o = 0; o < outputs; ++o) {
        const float start = bias != nullptr ? ToFloat(bias[o]) : 0.0f;
        T* const to = output.data() + o * output.dim(2) * output.dim(3);
        for (int64_t i = 0; i < held; ++i) to[tile_pixels[i]] = FromFloat<T>(sums[i * sum_stride + o] + start);
      }
    }
  };
  if (context.ParallelForWithScratch<char>(tiles, grain, tile_bytes, convolve)) return Status::Ok();
  return Internal("out of memory: scratch for ", outputs, " filters");
}

template <class T, class M>
Status MaskedConv(const MaskedConv2d& op, const Context& context, const Tensor<const T, 4>& features, const M* mask,
                  const Tensor<const T, 4>& weight, const std::optional<Tensor<const T, 1>>& bias,
                  const Tensor<T, 4>& output) {
  const int64_t pixels = output.dim(2) * output.dim(3);
  const Scratch<int64_t> listed = context.Allocate<int64_t>(pixels);
  if (!listed) return Internal("out of memory: a list of ", pixels, " pixels");
  const int64_t count = ListMasked(mask, pixels, listed.data());
  context.ParallelFor(output.dim(1), GrainFor(static_cast<double>(pixels) * 0.1), [&](int64_t begin, int64_t end) {
    std::fill_n(output.data() + begin * pixels, (end - begin) * pixels, FromFloat<T>(0));
  });
  return ConvolveListed<T>(op, context, features, weight, bias ? bias->data() : nullptr, listed.data(), count, output);
}

template <class T>
Status MaskedConvByReal(const MaskedConv2d& op, const Context& context, Tensor<const T, 4> features,
                        Tensor<const T, 3> mask, Tensor<const T, 4> weight, std::optional<Tensor<const T, 1>> bias,
                        Tensor<T, 4> output) {
  return MaskedConv<T>(op, context, features, mask.data(), weight, bias, output);
}
template <class T>
Status MaskedConvByBool(const MaskedConv2d& op, const Context& context, Tensor<const T, 4> features,
                        Tensor<const bool, 3> mask, Tensor<const T, 4> weight, std::optional<Tensor<const T, 1>> bias,
                        Tensor<T, 4> output) {
  return MaskedConv<T>(op, context, features, mask.data(), weight, bias, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MaskedConv2d, MaskedConvByReal, float, Half, BFloat16);
POLYOP_CPU_KERNELS(MaskedConv2d, MaskedConvByBool, float, Half, BFloat16);
}  // namespace polyop
#endif
