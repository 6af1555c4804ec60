// Deformable windows by their definition: for reference kernels only.
#pragma once

#include <cmath>

#include "core/status.h"
#include "core/tensor.h"
#include "families/deform_conv/window_rule.h"

namespace polyop::reference {

/// `offset(pixel, g, p)` points to an (x, y), `mask(pixel, g, p)` to a number.
template <class Offset, class Mask>
Status SumDeformWindows(const DeformWindowRule& op, const Tensor<const double, 4>& input, const Offset& offset,
                        const Mask& mask, const Tensor<double, 4>& output) {
  POLYOP_RETURN_IF_ERROR(CheckWindowPixels(input.shape()));
  const int64_t height = input.dim(1), width = input.dim(2), channels = input.dim(3);
  const double s = op.offset_scale;
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t c = i % channels, g = c / op.group_channels, at = i / channels;
    const int64_t wo = at % output.dim(2), ho = at / output.dim(2) % output.dim(1);
    const double* const picture = input.data() + at / output.dim(2) / output.dim(1) * height * width * channels;
    double sum = 0;
    int64_t p = 0;
    for (int64_t kx = 0; kx < op.kernel_w; ++kx) {
      for (int64_t ky = 0; ky < op.kernel_h; ++ky) {
        if (op.remove_center != 0 && kx == op.kernel_w / 2 && ky == op.kernel_h / 2) continue;
        const auto place = [s](int64_t out, int64_t stride, int64_t pad, int64_t dilation, int64_t kernel, int64_t k,
                               double shift) {
          const auto half = std::floor(static_cast<double>(dilation * (kernel - 1)) / 2);
          return static_cast<double>(out * stride - pad) + half - half * s +
                 (static_cast<double>(k * dilation) + shift) * s;
        };
        const double x = place(wo, op.stride_w, op.pad_w, op.dilation_w, op.kernel_w, kx, offset(at, g, p)[0]);
        const double y = place(ho, op.stride_h, op.pad_h, op.dilation_h, op.kernel_h, ky, offset(at, g, p)[1]);
        const double weight = *mask(at, g, p++);
        if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width))) continue;
        for (double row = std::floor(y); row <= std::floor(y) + 1; ++row) {
          for (double column = std::floor(x); column <= std::floor(x) + 1; ++column) {
            if (row < 0 || row >= static_cast<double>(height) || column < 0 || column >= static_cast<double>(width))
              continue;
            const int64_t pixel = static_cast<int64_t>(row) * width + static_cast<int64_t>(column);
            sum += (1 - std::abs(y - row)) * (1 - std::abs(x - column)) * weight * picture[pixel * channels + c];
          }
        }
      }
    }
    output[i] = sum;
  }
  return Status::Ok();
}

}  // namespace polyop::reference
