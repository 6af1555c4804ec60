// SPDX-License-Identifier: Apache-2.0
// Deformable convolution by its definition: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/status.h"
#include "core/tensor.h"
#include "ops/deform/deform_conv_rule.h"

namespace polyop::reference {

/// Returns a bilinear sample of a plane; pixels outside are 0.
inline double SampleZeroPadded(const double* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width))) return 0;
  double sum = 0;
  const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
  for (int64_t row = std::max<int64_t>(top, 0); row <= std::min(top + 1, height - 1); ++row) {
    for (int64_t column = std::max<int64_t>(left, 0); column <= std::min(left + 1, width - 1); ++column) {
      sum += (1 - std::abs(y - static_cast<double>(row))) * (1 - std::abs(x - static_cast<double>(column))) *
             plane[row * width + column];
    }
  }
  return sum;
}

/// `mask` (version 2) and `bias` may be null.
inline Status DeformConv(const DeformConvRule& op, const Tensor<const double, 4>& input,
                         const Tensor<const double, 4>& offset, const double* mask,
                         const Tensor<const double, 4>& weight, const double* bias, const Tensor<double, 4>& output) {
  const int64_t channels = input.dim(1), height = input.dim(2), width = input.dim(3), filters = weight.dim(0);
  const int64_t group_channels = weight.dim(1), kh = weight.dim(2), kw = weight.dim(3), rows = output.dim(2),
                columns = output.dim(3);
  if (channels % op.groups || channels % op.deform_groups || filters % op.groups)
    return InvalidArgument("'input': indivisible");
  for (int64_t n = 0; n < output.dim(0); ++n) {
    for (int64_t o = 0; o < filters; ++o) {
      for (int64_t p = 0; p < rows * columns; ++p) {
        double sum = bias != nullptr ? bias[o] : 0;
        for (int64_t i = 0; i < group_channels; ++i) {
          const int64_t c = o / (filters / op.groups) * group_channels + i, g = c / (channels / op.deform_groups);
          for (int64_t k = 0; k < kh * kw; ++k) {
            const int64_t sample = (n * op.deform_groups + g) * kh * kw + k;
            const int64_t row = p / columns * op.stride[0] - op.padding[0] + k / kw * op.dilation[0];
            const int64_t column = p % columns * op.stride[1] - op.padding[1] + k % kw * op.dilation[1];
            const double y = static_cast<double>(row) + offset[2 * sample * rows * columns + p];
            const double x = static_cast<double>(column) + offset[(2 * sample + 1) * rows * columns + p];
            const double* plane = input.data() + (n * channels + c) * height * width;
            const double factor = mask != nullptr ? mask[sample * rows * columns + p] : 1;
            sum +=
                SampleZeroPadded(plane, height, width, y, x) * factor * weight[(o * group_channels + i) * kh * kw + k];
          }
        }
        output[(n * filters + o) * rows * columns + p] = sum;
      }
    }
  }
  return Status::Ok();
}

}  // namespace polyop::reference
