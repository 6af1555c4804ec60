// SPDX-License-Identifier: Apache-2.0
// Reduces a column of rows to one number, in the rows' order, on the GPU. The GPU version of
// kernels/cpu/reduce_rows-inl.h.
#pragma once

#include <limits>

#include "kernels/cuda/cuda.h"

namespace polyop {

struct SumOfColumn {
  static constexpr float kStart = 0;
  POLYOP_HD static float Add(float sum, float x) { return sum + x; }
  POLYOP_HD static float Finish(float sum, int64_t) { return sum; }
};

struct MeanOfColumn : SumOfColumn {
  POLYOP_HD static float Finish(float sum, int64_t count) { return sum / static_cast<float>(count > 1 ? count : 1); }
};

struct ProductOfColumn : SumOfColumn {
  static constexpr float kStart = 1;
  POLYOP_HD static float Add(float product, float x) { return product * x; }
};

struct QuotientOfColumn : ProductOfColumn {
  POLYOP_HD static float Add(float quotient, float x) { return quotient / x; }
};

struct MaxOfColumn : SumOfColumn {
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
  POLYOP_HD static float Add(float max, float x) { return x > max || x != x ? x : max; }
};

template <bool kMax>
struct ExtremeOfColumnsNumbers : SumOfColumn {
  static constexpr float kStart = std::numeric_limits<float>::quiet_NaN();
  POLYOP_HD static float Add(float extreme, float x) {
    return (kMax ? x > extreme : x < extreme) || extreme != extreme ? x : extreme;
  }
  POLYOP_HD static float Finish(float extreme, int64_t count) { return count == 0 ? 0.0f : extreme; }
};

/// Reduces value(i), the element of row i, for i in [begin, end).
template <class Reduction, class Value>
POLYOP_HD float ReduceColumn(int64_t begin, int64_t end, const Value& value) {
  float result = Reduction::kStart;
  for (int64_t i = begin; i < end; ++i) result = Reduction::Add(result, value(i));
  return Reduction::Finish(result, end - begin);
}

}  // namespace polyop
