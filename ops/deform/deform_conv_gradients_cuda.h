// SPDX-License-Identifier: Apache-2.0
// The tensors of the gradients of deformable convolution on the GPU.
#pragma once

#include <optional>

#include "ops/deform/deform_conv_cuda.h"
#include "ops/sampling/bilinear_taps.h"

namespace polyop {

/// The gradients to compute.
template <class T>
struct DeformConvGradientsCuda {
  std::optional<Tensor<T, 4>> input, offset, mask, weight;
  std::optional<Tensor<T, 1>> bias;
};

namespace deform_conv_internal {

// The tensors of a call. Gradients that are not requested are null.
template <class T>
struct BackwardTensors {
  const T *grad_output, *input, *offset, *mask, *weight;
  T *grad_offset, *grad_mask;
  // Transposed copies for tiles: the input [batch][pixels][channels], and the weights [channels][points][filters of a
  // group].
  const T *by_pixels, *by_channels;

  POLYOP_HD SamplePosition Position(const Sizes& s, int64_t n, int64_t deform_group, int64_t point, int64_t out) const {
    const int64_t first = n * s.deform_groups * s.points() * s.out_pixels;
    return FindPosition(s, offset + 2 * first, mask != nullptr ? mask + first : nullptr, deform_group, point, out);
  }
  POLYOP_HD BilinearTaps Taps(const Sizes& s, int64_t n, int64_t deform_group, int64_t point, int64_t out) const {
    const SamplePosition at = Position(s, n, deform_group, point, out);
    return BilinearTaps::At(at.y, at.x, s.height, s.width, at.factor);
  }
  POLYOP_HD ZeroPaddedSample Sample(const Sizes& s, int64_t n, int64_t deform_group, int64_t point, int64_t out) const {
    const SamplePosition at = Position(s, n, deform_group, point, out);
    return ZeroPaddedSample::At(at.y, at.x, s.height, s.width, at.factor);
  }
  POLYOP_HD float GradOutput(const Sizes& s, int64_t n, int64_t filter, int64_t out) const {
    return ToFloat(grad_output[(n * s.filters + filter) * s.out_pixels + out]);
  }
  // Returns the weight of a filter for a channel of its group.
  POLYOP_HD float Weight(const Sizes& s, int64_t filter, int64_t channel, int64_t point) const {
    return ToFloat(weight[(filter * s.group_channels() + channel) * s.points() + point]);
  }
  POLYOP_HD const T* Plane(const Sizes& s, int64_t n, int64_t channel) const {
    return input + (n * s.channels + channel) * s.height * s.width;
  }
  POLYOP_DEVICE void WriteSlopes(const Sizes& s, int64_t n, int64_t deform_group, int64_t point, int64_t out,
                                 const BilinearSlopes& slopes) const {
    const int64_t at = (n * s.deform_groups + deform_group) * s.points() + point;
    if (grad_mask != nullptr) grad_mask[at * s.out_pixels + out] = FromFloat<T>(slopes.factor);
    if (grad_offset == nullptr) return;
    grad_offset[2 * at * s.out_pixels + out] = FromFloat<T>(slopes.y);
    grad_offset[(2 * at + 1) * s.out_pixels + out] = FromFloat<T>(slopes.x);
  }
};

}  // namespace deform_conv_internal
}  // namespace polyop
