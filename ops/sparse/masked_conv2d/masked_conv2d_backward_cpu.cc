// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse/masked_conv2d/masked_conv2d_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/sparse/masked_conv2d/masked_conv2d_backward.h"
#include "ops/sparse/masked_conv2d/masked_pixels.h"
#include "ops/sparse/sparse_conv_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Copies the gradients of the listed pixels to rows [count][outputs].
template <class T>
void GatherGradients(const Context& context, const T* grad, const int64_t* listed, int64_t count, int64_t outputs,
                     int64_t pixels, float* to) {
  constexpr int64_t kPixels = 64;
  const int64_t chunks = (count + kPixels - 1) / kPixels;
  context.ParallelFor(chunks, GrainFor(static_cast<double>(kPixels * outputs)), [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t first = chunk * kPixels, last = std::min(count, first + kPixels);
      for (int64_t o = 0; o < outputs; ++o) {
        for (int64_t i = first; i < last; ++i) to[i * outputs + o] = ToFloat(grad[o * pixels + listed[i]]);
      }
    }
  });
}

// A convolution of some channels as a sparse one: each position of the filter pairs the listed output pixels with
// pixels of the features, which are rows of `channels` padded to whole blocks.
template <class T>
struct MaskedGradients {
  const MaskedConv2dBackward& op;
  const Context& context;
  const Tensor<const T, 4>& features;
  const Tensor<const T, 4>& weight;
  const int64_t* listed;
  int64_t count, out_width;
  const float* grads;  // [count][outputs]

  int64_t outputs() const { return weight.dim(0); }
  int64_t offsets() const { return weight.dim(2) * weight.dim(3); }
  int64_t plane() const { return features.dim(2) * features.dim(3); }

  // Calls add(listed pixel, pixel of the features) for the pairs of position f.
  template <class Add>
  void ForPairs(int64_t f, const Add& add) const {
    const int64_t height = features.dim(2), width = features.dim(3);
    const int64_t down = f / weight.dim(3) - op.padding[0], right = f % weight.dim(3) - op.padding[1];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t y = listed[i] / out_width + down, x = listed[i] % out_width + right;
      if (y >= 0 && y < height && x >= 0 && x < width) add(i, y * width + x);
    }
  }

  // Transposes the weights of channels [first, first + channels) to [outputs][offsets][pitch].
  void WeightsByOffset(int64_t first, int64_t channels, int64_t pitch, float* to) const {
    const int64_t points = offsets();
    const double nanoseconds = 2 * static_cast<double>(points * pitch);
    context.ParallelFor(outputs(), GrainFor(nanoseconds), [&](int64_t begin, int64_t end) {
      std::fill_n(to + begin * points * pitch, (end - begin) * points * pitch, 0.0f);
      for (int64_t o = begin; o < end; ++o) {
        const T* const from = weight.data() + (o * weight.dim(1) + first) * points;
        float* const row = to + o * points * pitch;
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t f = 0; f < points; ++f) row[f * pitch + c] = ToFloat(from[c * points + f]);
        }
      }
    });
  }
  // The reverse.
  void ToWeights(const float* from, int64_t first, int64_t channels, int64_t pitch, T* to) const {
    const int64_t points = offsets();
    const double nanoseconds = 2 * static_cast<double>(points * pitch);
    context.ParallelFor(outputs(), GrainFor(nanoseconds), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const float* const row = from + o * points * pitch;
        T* const at = to + (o * weight.dim(1) + first) * points;
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t f = 0; f < points; ++f) at[c * points + f] = FromFloat<T>(row[f * pitch + c]);
        }
      }
    });
  }

  Status Compute(int64_t first, int64_t channels, T* grad_features, T* grad_weight) const {
    const int64_t pitch = ChannelBlocks::BlocksFor(channels) * kBlockChannels, weights = outputs() * offsets() * pitch;
    const auto size = [](bool exists, int64_t floats) { return exists ? floats : 0; };
    const Scratch<float> rows = context.Allocate<float>(size(grad_weight != nullptr, plane() * pitch));
    const Scratch<float> row_grads = context.Allocate<float>(size(grad_features != nullptr, plane() * pitch));
    const Scratch<float> filters = context.Allocate<float>(size(grad_features != nullptr, weights));
    const Scratch<float> filter_grads = context.Allocate<float>(size(grad_weight != nullptr, weights));
    if (!rows || !row_grads || !filters || !filter_grads) {
      return Internal("out of memory: ", channels, " channels of ", plane(), " pixels");
    }
    std::optional<Tensor<float, 2>> to_rows;
    std::optional<Tensor<float, 5>> to_filters;
    if (grad_weight != nullptr) {
      ToChannelsLast(context, features.data() + first * plane(), 1, channels, plane(), rows.data());
      to_filters.emplace(filter_grads.data(), Shape{outputs(), offsets(), 1, 1, pitch});
    }
    if (grad_features != nullptr) {
      WeightsByOffset(first, channels, pitch, filters.data());
      to_rows.emplace(row_grads.data(), Shape{plane(), pitch});
    }
    const auto visit = [&](int64_t f, const auto& add) { ForPairs(f, add); };
    POLYOP_RETURN_IF_ERROR(SparseConvBackward<float>(context, grads, count, outputs(),
                                                     Tensor<const float, 2>(rows.data(), Shape{plane(), pitch}),
                                                     filters.data(), offsets(), visit, to_rows, to_filters));
    if (grad_weight != nullptr) ToWeights(filter_grads.data(), first, channels, pitch, grad_weight);
    if (grad_features == nullptr) return Status::Ok();
    const int64_t blocks = pitch / kBlockChannels;
    context.ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t c = block * kBlockChannels;
        WriteChannels(row_grads.data() + c, plane(), std::min(kBlockChannels, channels - c), plane(),
                      grad_features + (first + c) * plane(), pitch);
      }
    });
    return Status::Ok();
  }
};

template <class T, class M>
Status MaskedConvBackward(const MaskedConv2dBackward& op, const Context& context, const Tensor<const T, 4>& grad,
                          const Tensor<const T, 4>& features, const M* mask, const Tensor<const T, 4>& weight,
                          const std::optional<Tensor<T, 4>>& grad_features,
                          const std::optional<Tensor<T, 4>>& grad_weight,
                          const std::optional<Tensor<T, 1>>& grad_bias) {
  constexpr int64_t kGroupBytes = 64 << 20;  // of the copies of features and their gradients
  const int64_t pixels = grad.dim(2) * grad.dim(3), outputs = grad.dim(1), channels = features.dim(1);
  const Scratch<int64_t> listed = context.Allocate<int64_t>(grad.size() == 0 ? 0 : pixels);
  if (!listed) return Internal("out of memory: a list of ", pixels, " pixels");
  const int64_t count = grad.size() == 0 ? 0 : ListMasked(mask, pixels, listed.data());
  if (std::max(count, features.dim(2) * features.dim(3)) > INT32_MAX && features.size() > 0) {
    return InvalidArgument("'features': expected at most ", INT32_MAX, " pixels, got shape ",
                           ToString(features.shape()));
  }
  const Scratch<float> grads = context.Allocate<float>(count * outputs);
  if (!grads) return Internal("out of memory: gradients of ", count, " pixels");
  GatherGradients(context, grad.data(), listed.data(), count, outputs, pixels, grads.data());
  if (grad_bias) POLYOP_RETURN_IF_ERROR(ColumnSums(context, grads.data(), count, outputs, grad_bias->data()));
  const MaskedGradients<T> gradients{op, context, features, weight, listed.data(), count, grad.dim(3), grads.data()};
  T* const to_features = grad_features && grad_features->size() > 0 ? grad_features->data() : nullptr;
  T* const to_weight = grad_weight && grad_weight->size() > 0 ? grad_weight->data() : nullptr;
  if (count == 0) {
    if (to_features != nullptr) std::fill_n(to_features, features.size(), FromFloat<T>(0));
    if (to_weight != nullptr) std::fill_n(to_weight, weight.size(), FromFloat<T>(0));
    return Status::Ok();
  }
  if (to_features == nullptr && to_weight == nullptr) return Status::Ok();
  const int64_t block_bytes = gradients.plane() * kBlockChannels * 2 * static_cast<int64_t>(sizeof(float));
  const int64_t group = std::max<int64_t>(kGroupBytes / std::max<int64_t>(block_bytes, 1), 1) * kBlockChannels;
  for (int64_t first = 0; first < channels; first += group) {
    POLYOP_RETURN_IF_ERROR(gradients.Compute(first, std::min(group, channels - first), to_features, to_weight));
  }
  return Status::Ok();
}

template <class T>
Status MaskedConvBackwardByReal(const MaskedConv2dBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                                Tensor<const T, 4> features, Tensor<const T, 3> mask, Tensor<const T, 4> weight,
                                std::optional<Tensor<const T, 1>>, std::optional<Tensor<T, 4>> grad_features,
                                std::optional<Tensor<T, 4>> grad_weight, std::optional<Tensor<T, 1>> grad_bias) {
  return MaskedConvBackward(op, context, grad_output, features, mask.data(), weight, grad_features, grad_weight,
                            grad_bias);
}
template <class T>
Status MaskedConvBackwardByBool(const MaskedConv2dBackward& op, const Context& context, Tensor<const T, 4> grad_output,
                                Tensor<const T, 4> features, Tensor<const bool, 3> mask, Tensor<const T, 4> weight,
                                std::optional<Tensor<const T, 1>>, std::optional<Tensor<T, 4>> grad_features,
                                std::optional<Tensor<T, 4>> grad_weight, std::optional<Tensor<T, 1>> grad_bias) {
  return MaskedConvBackward(op, context, grad_output, features, mask.data(), weight, grad_features, grad_weight,
                            grad_bias);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(MaskedConv2dBackward, MaskedConvBackwardByReal, float, Half, BFloat16);
POLYOP_CPU_KERNELS(MaskedConv2dBackward, MaskedConvBackwardByBool, float, Half, BFloat16);
}  // namespace polyop
#endif
