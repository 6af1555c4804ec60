// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/cuda/cuda.h"
#include "ops/sequence/selective_scan/selective_scan_tensors.h"

namespace polyop {

/// The inputs of a scan on a GPU. Row (n, c) of u, delta, z and the output is row n * dim + c.
template <class T>
struct ScanArrays : ScanTensors<T> {
  using ScanTensors<T>::ScanTensors;
  using ScanTensors<T>::u, ScanTensors<T>::delta, ScanTensors<T>::z, ScanTensors<T>::d, ScanTensors<T>::bias;
  using ScanTensors<T>::initial, ScanTensors<T>::dim, ScanTensors<T>::length, ScanTensors<T>::groups;
  using ScanTensors<T>::states, ScanTensors<T>::softplus;

  POLYOP_HD float StepSize(int64_t row, int64_t l) const {
    const float size = Sum(row, l);
    return softplus && !(size > 20) ? std::log1p(std::exp(size)) : size;
  }
  /// Returns the derivative of the step size.
  POLYOP_HD float StepSlope(int64_t row, int64_t l) const {
    const float size = Sum(row, l);
    return softplus && !(size > 20) ? 1 / (1 + std::exp(-size)) : 1.0f;
  }
  POLYOP_HD float U(int64_t row, int64_t l) const { return ToFloat(u[row * length + l]); }
  /// Returns the start of state s's row of B and C.
  POLYOP_HD int64_t Coefficients(int64_t row, int64_t s) const {
    const int64_t n = row / dim, g = row % dim / (dim / groups);
    return ((n * groups + g) * states + s) * length;
  }
  POLYOP_HD float Output(int64_t row, int64_t l, float y) const {
    if (d != nullptr) y += d[row % dim] * U(row, l);
    if (z == nullptr) return y;
    const float gate = ToFloat(z[row * length + l]);
    return y * (gate / (1 + std::exp(-gate)));
  }
  POLYOP_HD float Initial(int64_t row, int64_t s) const {
    return initial == nullptr ? 0.0f : initial[row * states + s];
  }

 private:
  POLYOP_HD float Sum(int64_t row, int64_t l) const {
    return ToFloat(delta[row * length + l]) + (bias == nullptr ? 0.0f : bias[row % dim]);
  }
};

}  // namespace polyop
