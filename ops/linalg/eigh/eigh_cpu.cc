// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linalg/eigh/eigh_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/linalg/blocked-inl.h"
#include "ops/linalg/blocked_eigen-inl.h"
#include "ops/linalg/eigh/eigh_lanes-inl.h"
#include "ops/linalg/eigh/eigh_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes single matrices in vectors of the instruction set.
template <class T>
struct SymmetricMatricesInVectors : SymmetricMatrices<T> {
  using SymmetricMatrices<T>::SymmetricMatrices;

  void Decompose(int64_t n, double* work) const {
    SymmetricMatrices<T>::template Decompose<blocked::VectorOps>(n, work);
  }

  // Computes a matrix by blocks. Requires: `work` has space for DoublesByBlocks() numbers.
  void DecomposeByBlocks(int64_t n, const Context* context, double* work) const {
    const int64_t order = this->size, area = order * order;
    double *const rows = work + area, *const found = rows + area;
    this->Read(n, work);
    if (!AllFinite(work, area) || !blocked::SymmetricEigen(context, work, reinterpret_cast<T*>(rows), order, found,
                                                           this->with_vectors ? rows : nullptr, found + order)) {
      return Decompose(n, work);
    }
    blocked::FromDoubles(found, order, this->values + n * order);
    if (!this->with_vectors) return;
    for (int64_t k = 0; k < order; ++k) {
      double* const row = rows + k * order;
      const double sign = linalg::SignOf(row, order);
      for (int64_t i = 0; i < order; ++i) row[i] *= sign;
    }
    blocked::Transpose(rows, order, order, this->basis + n * area);
  }

  int64_t DoublesByBlocks() const {
    return this->size * (2 * this->size + 1) + blocked::EigenDoubles(this->size, this->with_vectors);
  }
};

template <class T>
bool DecomposeMatrices(const Context& context, const SymmetricMatricesInVectors<T>& matrices) {
  if (matrices.size >= blocked::kMinSize) {
    return blocked::ForLargeMatrices(
        context, matrices.count, matrices.DoublesByBlocks(),
        [&](int64_t n, double* work, const Context* threads) { matrices.DecomposeByBlocks(n, threads, work); });
  }
  const bool in_groups = matrices.size > 0 && matrices.size <= kMaxSizeInLanes;
  return DecomposeAll<SymmetricLanes::kGroups>(context, matrices, in_groups, EighGroupDoubles(matrices),
                                               [&](int64_t first, int64_t count, double* memory, double* computed)
                                                   HWY_ATTR { EighGroup(matrices, first, count, memory, computed); });
}

template <class T>
Status EighCpu(const Eigh& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> values,
               Tensor<T, kAnyRank> basis) {
  const SymmetricMatricesInVectors<T> matrices(op, a, values, basis);
  if (!DecomposeMatrices(context, matrices)) return Internal("out of memory: matrices of ", matrices.size, " rows");
  return op.CheckConverged(a.shape(), values.data(), values.dim(values.rank() - 1));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Eigh, EighCpu, float, double);
}  // namespace polyop
#endif
