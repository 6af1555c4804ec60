// SPDX-License-Identifier: Apache-2.0
// Decomposes small symmetric matrices in parallel, one in each lane of a vector. Compiled once per instruction set;
// include it from a kernel file.
#if defined(POLYOP_OPS_LINALG_EIGH_EIGH_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_EIGH_EIGH_LANES_INL_H_
#undef POLYOP_OPS_LINALG_EIGH_EIGH_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_EIGH_EIGH_LANES_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/linalg/eigh/eigh_of_matrix.h"
#include "ops/linalg/lanes-inl.h"
#include "ops/linalg/symmetric_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// The number of doubles that EighGroup's `memory` must have space for.
template <class T>
int64_t EighGroupDoubles(const SymmetricMatrices<T>& matrices) {
  return 2 * SymmetricLanes::kGroups * LaneMatrices::Doubles(matrices.size, matrices.size) +
         SymmetricLanes::Doubles(matrices.size);
}

/// Decomposes `count` matrices, except for those with unusual values: their done[] is 0.
template <class T>
void EighGroup(const SymmetricMatrices<T>& matrices, int64_t first, int64_t count, double* memory, double* done) {
  constexpr int kGroups = SymmetricLanes::kGroups;
  const int64_t size = matrices.size, lanes = RealLanes(), area = LaneMatrices::Doubles(size, size);
  SymmetricLanes::Group groups[kGroups];
  RealMask usual[kGroups], converged[kGroups];
  for (int g = 0; g < kGroups; ++g) {
    const LaneMatrices a{memory + 2 * g * area, size, size};
    groups[g] = {a, {matrices.with_vectors ? a.elements + area : nullptr, size, size}};
    const int64_t start = std::min(g * lanes, count - 1);  // a group without matrices repeats the last one
    a.Read(matrices.from + (first + start) * size * size, std::min(lanes, count - start));
    for (int64_t i = 0; i < size && !matrices.upper; ++i) {
      for (int64_t j = 0; j < i; ++j) a.Set(j, i, a.Get(i, j));
    }
    usual[g] = MakeUsual(a);
  }
  const double tolerance = std::is_same_v<T, float> ? 0x1p-42 : std::numeric_limits<double>::epsilon();
  const SymmetricLanes eigen(groups, size, tolerance, memory + 2 * kGroups * area);
  eigen.Decompose(converged);
  for (int g = 0; g < kGroups; ++g) {
    HWY_ALIGN double values[kMaxSizeInLanes * hn::MaxLanes(RealTag())],
        order[kMaxSizeInLanes * hn::MaxLanes(RealTag())];
    double* const computed = done + g * lanes;
    StoreLanes(hn::And(usual[g], converged[g]), computed);
    for (int64_t k = 0; k < size; ++k) StoreReals(WithoutSignOfZero(eigen.Value(k, g)), values + k * lanes);
    SortInLanes(values, size, matrices.with_vectors ? order : nullptr);
    const int64_t start = first + g * lanes, here = std::min(lanes, first + count - start);
    LaneMatrices{values, 1, size}.Write(here, matrices.values + start * size);
    if (!matrices.with_vectors) continue;
    const LaneMatrices& vectors = groups[g].vectors;
    for (int64_t k = 0; k < size; ++k) ScaleRow(vectors, k, SignOfRow(vectors, k));
    for (int64_t m = 0; m < here; ++m) {
      if (computed[m] == 0) continue;
      StoreRowsInOrder(vectors, m, order, false, true, matrices.basis + (start + m) * size * size);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
