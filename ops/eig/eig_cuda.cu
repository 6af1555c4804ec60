#include "kernels/cuda/cuda.h"
#include "ops/eig/eig_of_matrix.h"

namespace polyop {
namespace {

// Each thread decomposes one matrix in scratch memory.
template <class T>
Status EigCuda(const Eig& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> values,
               Tensor<T, kAnyRank> basis) {
  const GeneralMatrices<T> matrices(op, a, values, basis);
  const int64_t size = matrices.WorkSize();
  double* const work = cuda.Allocate<double>(matrices.count * size);
  return ForEach(cuda, matrices.count, [=] POLYOP_DEVICE(int64_t n) { matrices.Decompose(n, work + n * size); });
}

POLYOP_CUDA_KERNELS(Eig, EigCuda, float, double);

}  // namespace
}  // namespace polyop
