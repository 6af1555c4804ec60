// SPDX-License-Identifier: Apache-2.0
// The gradient of bicubic resizing in double precision, for the references of several operators.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace polyop::reference {

/// An input pixel of an output pixel, and its weight.
struct CubicTap {
  int64_t pixel;
  double weight;
};

/// The four input pixels of each output pixel of an axis.
using CubicTaps = std::vector<std::array<CubicTap, 4>>;

/// Returns Keys' cubic kernel, by its definition in two branches.
inline double CubicKernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

/// Returns the taps of `outputs` pixels, whose coordinates in the input are position(i). Pixels outside repeat the
/// border, or with `exclude_outside` have the weight 0, and the other weights are normalised.
template <class Position>
CubicTaps CubicTapsOf(int64_t inputs, int64_t outputs, double a, bool exclude_outside, const Position& position) {
  CubicTaps all;
  for (int64_t i = 0; i < outputs; ++i) {
    const double at = position(static_cast<double>(i));
    const auto first = static_cast<int64_t>(std::floor(at)) - 1;
    std::array<CubicTap, 4> taps;
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t inside = std::clamp<int64_t>(first + k, 0, inputs - 1);
      const bool used = !exclude_outside || inside == first + k;
      taps[static_cast<size_t>(k)] = {inside, used ? CubicKernel(at - static_cast<double>(first + k), a) : 0.0};
      sum += taps[static_cast<size_t>(k)].weight;
    }
    for (CubicTap& tap : taps) tap.weight /= exclude_outside ? sum : 1;
    all.push_back(taps);
  }
  return all;
}

/// Sets grad_input [N, C, H, W] to the gradient for grad_output [N, C, OH, OW].
inline void ResizeBackward(Tensor<const double, 4> grad_output, const CubicTaps& rows, const CubicTaps& columns,
                           Tensor<double, 4> grad_input) {
  const int64_t planes = grad_input.dim(0) * grad_input.dim(1);
  std::fill_n(grad_input.data(), grad_input.size(), 0.0);
  const double* grad = grad_output.data();
  for (int64_t plane = 0; plane < planes; ++plane) {
    double* const to = grad_input.data() + plane * grad_input.dim(2) * grad_input.dim(3);
    for (const auto& downs : rows) {
      for (const auto& acrosses : columns) {
        for (const CubicTap& down : downs) {
          for (const CubicTap& across : acrosses) {
            const double weight = down.weight * across.weight;
            if (weight != 0) to[down.pixel * grad_input.dim(3) + across.pixel] += *grad * weight;
          }
        }
        ++grad;
      }
    }
  }
}

}  // namespace polyop::reference
