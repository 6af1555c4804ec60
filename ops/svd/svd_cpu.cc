#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/svd/svd_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/linalg/blocked-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/svd/svd_lanes-inl.h"
#include "ops/svd/svd_of_matrix.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Decomposes single matrices in vectors of the instruction set.
template <class T>
struct MatricesInVectors : MatricesToDecompose<T> {
  using MatricesToDecompose<T>::MatricesToDecompose;
  void Decompose(int64_t n, double* work) const {
    MatricesToDecompose<T>::template Decompose<blocked::VectorOps>(n, work);
  }
};

template <class T>
Status SvdCpu(const Svd& op, const Context& context, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> u,
              Tensor<T, kAnyRank> s, Tensor<T, kAnyRank> vh) {
  const MatricesInVectors<T> matrices(op, a, u, s, vh);
  const bool done = DecomposeAll(context, matrices, HasSvdGroups(matrices), SvdGroupDoubles(matrices),
                                 [&](int64_t first, int64_t count, double* memory, double* computed)
                                     HWY_ATTR { SvdGroup(matrices, first, count, memory, computed); });
  if (!done) return Internal("out of memory: matrices of ", matrices.WorkSize(), " elements");
  return op.CheckConverged(a.shape(), s.data(), s.dim(s.rank() - 1));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Svd, SvdCpu, float, double);
}  // namespace polyop
#endif
