// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "ops/linalg/block_elimination_cuda.h"
#include "ops/linalg/matrix_factors/factor_matrix.h"

namespace polyop {
namespace {

// Each block factors one matrix, in shared memory if it fits.
template <class T>
Status FactorInBlocks(const CudaContext& cuda, const MatricesToFactor<T>& matrices) {
  const int64_t rows = matrices.rows, columns = matrices.columns, least = matrices.smaller();
  const bool cholesky = matrices.method == MatrixFactors::Method::kCholesky;
  const int64_t stride = linalg::SharedStride(columns), size = rows * stride;
  const bool in_shared = size <= linalg::kMaxSharedElements;
  const int64_t at_once = in_shared ? matrices.count : std::min(matrices.count, linalg::kMaxBlocksAtOnce);
  double* const scratch = in_shared ? nullptr : cuda.Allocate<double>(at_once * size);
  const int64_t bytes = (in_shared ? size * 8 : 0) + 48;
  for (int64_t first = 0; first < matrices.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForBlocks<linalg::kMaxBlockThreads>(
        cuda, std::min(at_once, matrices.count - first), linalg::BlockThreads(rows * columns), bytes,
        [=] POLYOP_DEVICE(Block& block) {
          const int64_t n = first + block.index;
          int64_t* const pivot_row = block.Shared<int64_t>(1);
          double* const inverse = block.Shared<double>(1);
          double* const a = in_shared ? block.Shared<double>(static_cast<int>(size)) : scratch + block.index * size;
          const T* const from = matrices.from + n * rows * columns;
          T* const to = matrices.factors + n * rows * columns;
          int32_t* const pivots = matrices.pivots + n * least;
          linalg::ForElements(block, 0, rows, 0, columns, [&](int64_t i, int64_t j) {
            a[i * stride + j] = cholesky && j > i ? 0 : static_cast<double>(from[i * columns + j]);
          });
          const int32_t info = cholesky ? linalg::FactorCholeskyInBlock(block, a, rows, stride, inverse)
                                        : linalg::FactorLuInBlock(block, a, rows, columns, stride, pivots, pivot_row);
          const bool failed = cholesky && info != 0;
          block.ForThreads([&](int t) {
            if (t == 0) matrices.info[n] = info;
            for (int64_t k = t; k < least; k += block.threads()) {
              const double scale = cholesky ? 0 : matrices.SignedPivot(a[k * (stride + 1)], pivots, k);
              matrices.scales[n * least + k] = static_cast<T>(scale);
              if (cholesky) pivots[k] = static_cast<int32_t>(k + 1);
            }
          });
          linalg::ForElements(block, 0, rows, 0, columns, [&](int64_t i, int64_t j) {
            const int64_t at = i * columns + j;
            if (failed && matrices.check_errors) {
              to[at] = NAN;
            } else if (failed && i >= info) {  // the computation ended before this row
              to[at] = j > i ? 0 : from[at];
            } else {
              to[at] = static_cast<T>(a[i * stride + j]);
            }
          });
        }));
  }
  return Status::Ok();
}

// Each thread factors one matrix in scratch memory.
template <class T>
Status FactorInThreads(const CudaContext& cuda, const MatricesToFactor<T>& matrices) {
  const int64_t size = matrices.WorkSize(), at_once = std::min(matrices.count, linalg::kMaxThreadsAtOnce);
  double* const work = cuda.Allocate<double>(at_once * size);
  for (int64_t first = 0; first < matrices.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, std::min(at_once, matrices.count - first),
                                   [=] POLYOP_DEVICE(int64_t i) { matrices.Factor(first + i, work + i * size); }));
  }
  return Status::Ok();
}

template <class T>
Status MatrixFactorsCuda(const MatrixFactors& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a,
                         Tensor<T, kAnyRank> factors, Tensor<T, kAnyRank> scales, Tensor<int32_t, kAnyRank> pivots,
                         Tensor<int32_t, kAnyRank> info) {
  const MatricesToFactor<T> matrices(op, a, factors, scales, pivots, info);
  const bool has_blocks = op.method == MatrixFactors::Method::kCholesky || op.method == MatrixFactors::Method::kLu;
  return has_blocks && matrices.smaller() > linalg::kMaxSizeOfThread ? FactorInBlocks(cuda, matrices)
                                                                     : FactorInThreads(cuda, matrices);
}

POLYOP_CUDA_KERNELS(MatrixFactors, MatrixFactorsCuda, float, double);

}  // namespace
}  // namespace polyop
