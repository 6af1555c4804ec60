// SPDX-License-Identifier: Apache-2.0
// Conversions from and to 8-bit integers in double precision: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/tensor.h"
#include "ops/quantized/quantized_rule.h"

namespace polyop::reference {

/// A tensor of real numbers that owns its memory.
template <int R>
struct RealTensor {
  std::vector<double> values;
  Shape shape;

  Tensor<const double, R> view() const { return {values.data(), shape}; }
  Tensor<double, R> view() { return {values.data(), shape}; }
};

/// Returns the numbers that an input stands for.
template <class I, int R>
RealTensor<R> Dequantized(const QuantizedRule& rule, const Tensor<const I, R>& input) {
  RealTensor<R> real{{}, input.shape()};
  for (int64_t i = 0; i < input.size(); ++i) {
    real.values.push_back(static_cast<double>(int64_t{input[i]} - rule.input_zero_point) * rule.input_scale);
  }
  return real;
}

/// Returns a tensor of zeros for the results of an operator.
template <class I, int R>
RealTensor<R> ResultsFor(const Tensor<I, R>& output) {
  return {std::vector<double>(static_cast<size_t>(output.size())), output.shape()};
}

/// Rounds results as QuantizeLinear does: to nearest, ties to even, clamped. NaN counts as 0.
template <class I, int R>
void Quantize(const QuantizedRule& rule, const RealTensor<R>& real, const Tensor<I, R>& output) {
  using Limits = std::numeric_limits<I>;
  for (int64_t i = 0; i < output.size(); ++i) {
    const double scaled = real.values[static_cast<size_t>(i)] / rule.output_scale;
    const double shifted =
        std::nearbyint(std::isnan(scaled) ? 0 : scaled) + static_cast<double>(rule.output_zero_point);
    output[i] = static_cast<I>(std::clamp(shifted, double{Limits::min()}, double{Limits::max()}));
  }
}

}  // namespace polyop::reference
