#include "kernels/cuda/cuda.h"
#include "ops/matrix_factors/factor_matrix.h"

namespace polyop {
namespace {

// Each thread factors one matrix in scratch memory.
template <class T>
Status MatrixFactorsCuda(const MatrixFactors& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a,
                         Tensor<T, kAnyRank> factors, Tensor<T, kAnyRank> scales, Tensor<int32_t, kAnyRank> pivots,
                         Tensor<int32_t, kAnyRank> info) {
  const MatricesToFactor<T> matrices(op, a, factors, scales, pivots, info);
  const int64_t size = matrices.WorkSize();
  double* const work = cuda.Allocate<double>(matrices.count * size);
  return ForEach(cuda, matrices.count, [=] POLYOP_DEVICE(int64_t n) { matrices.Factor(n, work + n * size); });
}

POLYOP_CUDA_KERNELS(MatrixFactors, MatrixFactorsCuda, float, double);

}  // namespace
}  // namespace polyop
