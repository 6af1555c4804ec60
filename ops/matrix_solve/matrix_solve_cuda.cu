#include "kernels/cuda/cuda.h"
#include "ops/matrix_solve/solve_matrix.h"

namespace polyop {
namespace {

// Each thread solves the equations of one matrix in scratch memory.
template <class T>
Status MatrixSolveCuda(const MatrixSolve& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a,
                       Tensor<const T, kAnyRank> b, std::optional<Tensor<const int32_t, kAnyRank>> pivots,
                       Tensor<T, kAnyRank> x, Tensor<int32_t, kAnyRank> info) {
  const EquationsToSolve<T> equations(op, a, b, pivots, x, info);
  const int64_t size = equations.WorkSize(), rows = equations.RowsSize();
  double* const work = cuda.Allocate<double>(equations.count * size);
  int32_t* const exchanged = cuda.Allocate<int32_t>(equations.count * rows);
  return ForEach(cuda, equations.count,
                 [=] POLYOP_DEVICE(int64_t n) { equations.Solve(n, work + n * size, exchanged + n * rows); });
}

POLYOP_CUDA_KERNELS(MatrixSolve, MatrixSolveCuda, float, double);

}  // namespace
}  // namespace polyop
