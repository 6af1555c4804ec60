// SPDX-License-Identifier: Apache-2.0
// Products of a query with rows of keys. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_ATTENTION_NEIGHBORHOOD_ATTENTION_NEIGHBORHOOD_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_ATTENTION_NEIGHBORHOOD_ATTENTION_NEIGHBORHOOD_ROWS_INL_H_
#undef POLYOP_OPS_ATTENTION_NEIGHBORHOOD_ATTENTION_NEIGHBORHOOD_ROWS_INL_H_
#else
#define POLYOP_OPS_ATTENTION_NEIGHBORHOOD_ATTENTION_NEIGHBORHOOD_ROWS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using RowTag = hn::ScalableTag<float>;

// Loads up to one vector of a row of `count` elements from element i on; the lanes behind the row are 0.
template <class T>
HWY_INLINE hn::Vec<RowTag> LoadPart(const T* row, int64_t i, int64_t count) {
  const RowTag d;
  const int64_t left = count - i;
  return left >= static_cast<int64_t>(hn::Lanes(d)) ? LoadFloat(d, row + i)
                                                    : LoadFloatN(d, row + i, static_cast<size_t>(left));
}

// Sets products[j] to factor * the product of x[0, depth) and rows + index[j] * step. `x` is padded with zeros to
// whole vectors. Writes up to three elements beyond.
template <class T>
void Products(const float* x, const T* rows, const int64_t* index, int64_t step, int64_t count, int64_t depth,
              float factor, float* products) {
  const RowTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < count; j += 4) {
    const T* row[4];
    for (int64_t k = 0; k < 4; ++k) row[k] = rows + index[std::min(j + k, count - 1)] * step;
    hn::Vec<RowTag> sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (int64_t i = 0; i < depth; i += lanes) {
      const auto part = hn::LoadU(d, x + i);
      for (int k = 0; k < 4; ++k) sums[k] = hn::MulAdd(part, LoadPart(row[k], i, depth), sums[k]);
    }
    const QuadTag quad;
    hn::StoreU(hn::Mul(SumsOfLanes(d, sums), hn::Set(quad, factor)), quad, products + j);
  }
}

// Sets to[0, depth) to the sum of weights[j] times rows + index[j] * step. Writes up to one vector beyond.
template <class T>
void WeightedSum(const float* weights, const T* rows, const int64_t* index, int64_t step, int64_t count, int64_t depth,
                 float* to) {
  const RowTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < depth; i += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t j = 0; j < count; ++j) {
      sum = hn::MulAdd(hn::Set(d, weights[j]), LoadPart(rows + index[j] * step, i, depth), sum);
    }
    hn::StoreU(sum, d, to + i);
  }
}

// Adds weights[j] * x[0, depth) to row index[j] of `to`, whose rows have a multiple of a vector's elements.
inline void AddProducts(const float* weights, const float* x, const int64_t* index, int64_t count, int64_t pitch,
                        float* to) {
  const RowTag d;
  for (int64_t j = 0; j < count; ++j) {
    float* const row = to + index[j] * pitch;
    const auto weight = hn::Set(d, weights[j]);
    for (int64_t i = 0; i < pitch; i += static_cast<int64_t>(hn::Lanes(d))) {
      hn::StoreU(hn::MulAdd(weight, hn::LoadU(d, x + i), hn::LoadU(d, row + i)), d, row + i);
    }
  }
}

// Returns `count` rounded up to whole vectors of all instruction sets.
constexpr int64_t Padded(int64_t count) { return (count + 15) / 16 * 16; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
