#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/eigh/eigh_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/linalg/blocked-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/eigh/eigh_lanes-inl.h"
#include "ops/eigh/eigh_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The algorithm for one matrix takes fewer operations for larger ones.
constexpr int64_t kMaxRowsByJacobi = 13;

// Computes single matrices in vectors of the instruction set.
template <class T>
struct SymmetricMatricesInVectors : SymmetricMatrices<T> {
  using SymmetricMatrices<T>::SymmetricMatrices;
  void Decompose(int64_t n, double* work) const {
    SymmetricMatrices<T>::template Decompose<blocked::VectorOps>(n, work);
  }
};

template <class T>
Status EighCpu(const Eigh& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> values,
               Tensor<T, kAnyRank> basis) {
  const SymmetricMatricesInVectors<T> matrices(op, a, values, basis);
  const bool in_groups = matrices.count > 1 && matrices.size > 0 && matrices.size <= kMaxRowsByJacobi;
  const bool done = DecomposeAll(context, matrices, in_groups, EighGroupDoubles(matrices),
                                 [&](int64_t first, int64_t count, double* memory, double* computed)
                                     HWY_ATTR { EighGroup(matrices, first, count, memory, computed); });
  if (!done) return Internal("out of memory: matrices of ", matrices.size, " rows");
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
