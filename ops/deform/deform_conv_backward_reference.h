// SPDX-License-Identifier: Apache-2.0
// The gradients of deformable convolution by their definition: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/deform/deform_conv_backward.h"
#include "ops/deform/deform_conv_shape.h"

namespace polyop::reference {

/// `mask` may be null, as may gradients that are not needed. Products with a weight of 0 are not added.
inline Status DeformConvBackward(const DeformConvRule& op, const Tensor<const double, 4>& grad_output,
                                 const Tensor<const double, 4>& input, const Tensor<const double, 4>& offset,
                                 const double* mask, const Tensor<const double, 4>& weight,
                                 const DeformConvGradients<double>& to) {
  const auto s = DeformConvShape::Of(op, input.shape(), weight.shape(), grad_output.shape());
  if (s.channels % s.groups || s.channels % s.deform_groups || s.outputs % s.groups)
    return InvalidArgument("'input': indivisible");
  const int64_t points = s.points(), pixels = s.out_pixels();
  if (to.input != nullptr) std::fill_n(to.input, input.size(), 0.0);
  if (to.offset != nullptr) std::fill_n(to.offset, offset.size(), 0.0);
  if (to.mask != nullptr) std::fill_n(to.mask, offset.size() / 2, 0.0);
  if (to.weight != nullptr) std::fill_n(to.weight, weight.size(), 0.0);
  if (to.bias != nullptr) std::fill_n(to.bias, s.outputs, 0.0);
  for (int64_t i = 0; to.bias != nullptr && i < grad_output.size(); ++i)
    to.bias[i / pixels % s.outputs] += grad_output[i];

  const auto times = [](double factor, double value) { return factor == 0 ? 0.0 : factor * value; };
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t c = 0; c < s.channels; ++c) {
      const int64_t group = c / s.group_channels(), plane = (n * s.channels + c) * s.pixels();
      for (int64_t k = 0; k < points; ++k) {
        const int64_t sample = (n * s.deform_groups + c / s.deform_channels()) * points + k;
        for (int64_t p = 0; p < pixels; ++p) {
          const int64_t row = p / s.out_width * s.stride[0] - s.padding[0] + k / s.kernel_width * s.dilation[0];
          const int64_t column = p % s.out_width * s.stride[1] - s.padding[1] + k % s.kernel_width * s.dilation[1];
          const double y = static_cast<double>(row) + offset[2 * sample * pixels + p];
          const double x = static_cast<double>(column) + offset[(2 * sample + 1) * pixels + p];
          if (!(y > -1 && y < static_cast<double>(s.height) && x > -1 && x < static_cast<double>(s.width))) continue;
          const double factor = mask != nullptr ? mask[sample * pixels + p] : 1;

          double grad = 0;  // of the sample
          for (int64_t o = group * s.group_outputs(); o < (group + 1) * s.group_outputs(); ++o) {
            grad += grad_output[(n * s.outputs + o) * pixels + p] *
                    weight[(o * s.group_channels() + c % s.group_channels()) * points + k];
          }
          double value = 0;
          for (double r = std::floor(y); r <= std::floor(y) + 1; ++r) {
            for (double q = std::floor(x); q <= std::floor(x) + 1; ++q) {
              if (r < 0 || r >= static_cast<double>(s.height) || q < 0 || q >= static_cast<double>(s.width)) continue;
              const int64_t at = plane + static_cast<int64_t>(r) * s.width + static_cast<int64_t>(q);
              const double wy = 1 - std::abs(y - r), wx = 1 - std::abs(x - q);
              value += wy * wx * input[at];
              if (to.input != nullptr) to.input[at] += times(wy * wx * factor, grad);
              if (to.mask != nullptr) to.mask[sample * pixels + p] += times(wy * wx, grad * input[at]);
              if (to.offset == nullptr) continue;
              // The weight of a pixel at or above the position decreases when the position moves down.
              to.offset[2 * sample * pixels + p] += times((r > y ? wx : -wx) * factor, grad * input[at]);
              to.offset[(2 * sample + 1) * pixels + p] += times((q > x ? wy : -wy) * factor, grad * input[at]);
            }
          }
          for (int64_t o = group * s.group_outputs(); to.weight != nullptr && o < (group + 1) * s.group_outputs();
               ++o) {
            to.weight[(o * s.group_channels() + c % s.group_channels()) * points + k] +=
                grad_output[(n * s.outputs + o) * pixels + p] * (value * factor);
          }
        }
      }
    }
  }
  return Status::Ok();
}

}  // namespace polyop::reference
