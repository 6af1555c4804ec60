// SPDX-License-Identifier: Apache-2.0
// DCNv3 and DCNv4 by their definition: for reference kernels only.
#pragma once

#include <cmath>

#include "core/status.h"
#include "core/tensor.h"
#include "ops/deform/dcn_window_rule.h"

namespace polyop::reference {

/// Calls visit(p, y, x) for the position of each sample p of output pixel `at` and group g that is less than a pixel
/// outside of the image. `offset(pixel, g, p)` returns a pointer to (x, y).
template <class Offset, class Visit>
void ForEachDcnSample(const DcnWindowRule& op, const Shape& input, const Shape& output, int64_t at, int64_t g,
                      const Offset& offset, const Visit& visit) {
  const double s = op.offset_scale, height = static_cast<double>(input[1]), width = static_cast<double>(input[2]);
  const int64_t wo = at % output[2], ho = at / output[2] % output[1];
  int64_t p = 0;
  for (int64_t kx = 0; kx < op.kernel_w; ++kx) {
    for (int64_t ky = 0; ky < op.kernel_h; ++ky) {
      if (op.remove_center != 0 && kx == op.kernel_w / 2 && ky == op.kernel_h / 2) continue;
      const auto position = [s](int64_t out, int64_t stride, int64_t pad, int64_t dilation, int64_t kernel, int64_t k,
                                double shift) {
        const auto half = std::floor(static_cast<double>(dilation * (kernel - 1)) / 2);
        return static_cast<double>(out * stride - pad) + half - half * s +
               (static_cast<double>(k * dilation) + shift) * s;
      };
      const double x = position(wo, op.stride_w, op.pad_w, op.dilation_w, op.kernel_w, kx, offset(at, g, p)[0]);
      const double y = position(ho, op.stride_h, op.pad_h, op.dilation_h, op.kernel_h, ky, offset(at, g, p)[1]);
      if (y > -1 && y < height && x > -1 && x < width) visit(p, y, x);
      ++p;
    }
  }
}

/// Calls visit(pixel, dy, dx) for each pixel of the image around a position, which is dy below and dx to the right of
/// it. These may be negative.
template <class Visit>
void ForEachDcnPixel(const Shape& input, double y, double x, const Visit& visit) {
  for (double row = std::floor(y); row <= std::floor(y) + 1; ++row) {
    for (double column = std::floor(x); column <= std::floor(x) + 1; ++column) {
      if (row < 0 || row >= static_cast<double>(input[1]) || column < 0 || column >= static_cast<double>(input[2]))
        continue;
      visit(static_cast<int64_t>(row) * input[2] + static_cast<int64_t>(column), y - row, x - column);
    }
  }
}

/// `offset(pixel, g, p)` returns a pointer to (x, y), `mask(pixel, g, p)` to a number.
template <class Offset, class Mask>
Status SumDcnWindows(const DcnWindowRule& op, const Tensor<const double, 4>& input, const Offset& offset,
                     const Mask& mask, const Tensor<double, 4>& output) {
  POLYOP_RETURN_IF_ERROR(CheckDcnPixels(input.shape()));
  const int64_t channels = input.dim(3), pixels = input.dim(1) * input.dim(2);
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t c = i % channels, g = c / op.group_channels, at = i / channels;
    const double* const image = input.data() + at / output.dim(2) / output.dim(1) * pixels * channels;
    double sum = 0;
    ForEachDcnSample(op, input.shape(), output.shape(), at, g, offset, [&](int64_t p, double y, double x) {
      ForEachDcnPixel(input.shape(), y, x, [&](int64_t pixel, double dy, double dx) {
        sum += (1 - std::abs(dy)) * (1 - std::abs(dx)) * *mask(at, g, p) * image[pixel * channels + c];
      });
    });
    output[i] = sum;
  }
  return Status::Ok();
}

/// Adds up the gradients of SumDcnWindows in grad_input, which may be null, and by grad_offset(pixel, g, p), which
/// returns a pointer to (x, y) or null, and grad_mask(pixel, g, p). All must be 0 initially. Products with a weight of
/// 0 are not added.
template <class Offset, class Mask, class GradOffset, class GradMask>
Status SumDcnWindowsBackward(const DcnWindowRule& op, const Tensor<const double, 4>& grad_output,
                             const Tensor<const double, 4>& input, const Offset& offset, const Mask& mask,
                             double* grad_input, const GradOffset& grad_offset, const GradMask& grad_mask) {
  POLYOP_RETURN_IF_ERROR(CheckDcnPixels(input.shape()));
  const int64_t channels = input.dim(3), pixels = input.dim(1) * input.dim(2);
  const auto times = [](double factor, double value) { return factor == 0 ? 0.0 : factor * value; };
  for (int64_t i = 0; i < grad_output.size(); ++i) {
    const int64_t c = i % channels, g = c / op.group_channels, at = i / channels;
    const int64_t image = at / grad_output.dim(2) / grad_output.dim(1) * pixels * channels;
    const double grad = grad_output[i];
    ForEachDcnSample(op, input.shape(), grad_output.shape(), at, g, offset, [&](int64_t p, double y, double x) {
      const double weight = *mask(at, g, p);
      double* const to_offset = grad_offset(at, g, p);
      double* const to_mask = grad_mask(at, g, p);
      ForEachDcnPixel(input.shape(), y, x, [&](int64_t pixel, double dy, double dx) {
        const int64_t element = image + pixel * channels + c;
        const double wy = 1 - std::abs(dy), wx = 1 - std::abs(dx), product = grad * input[element];
        if (grad_input != nullptr) grad_input[element] += times(wy * wx * weight, grad);
        if (to_mask != nullptr) *to_mask += times(wy * wx, product);
        if (to_offset == nullptr) return;
        // The weight of a pixel at or above the position decreases when the position moves down.
        to_offset[0] += times((dx < 0 ? wy : -wy) * weight * op.offset_scale, product);
        to_offset[1] += times((dy < 0 ? wx : -wx) * weight * op.offset_scale, product);
      });
    });
  }
  return Status::Ok();
}

}  // namespace polyop::reference
