#include "kernels/cuda/cuda.h"
#include "ops/svd/svd_of_matrix.h"

namespace polyop {
namespace {

// Each thread decomposes one matrix in scratch memory.
template <class T>
Status SvdCuda(const Svd& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> u,
               Tensor<T, kAnyRank> s, Tensor<T, kAnyRank> vh) {
  const MatricesToDecompose<T> matrices(op, a, u, s, vh);
  const int64_t size = matrices.WorkSize();
  double* const work = cuda.Allocate<double>(matrices.count * size);
  return ForEach(cuda, matrices.count, [=] POLYOP_DEVICE(int64_t n) { matrices.Decompose(n, work + n * size); });
}

POLYOP_CUDA_KERNELS(Svd, SvdCuda, float, double);

}  // namespace
}  // namespace polyop
