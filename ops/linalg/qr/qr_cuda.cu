// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "ops/linalg/block_elimination_cuda.h"
#include "ops/linalg/block_householder_cuda.h"
#include "ops/linalg/qr/qr_of_matrix.h"

namespace polyop {
namespace {

// Each block factors one matrix in scratch memory.
template <class T>
Status FactorInBlocks(const CudaContext& cuda, const OrthogonalFactors<T>& matrices) {
  const int64_t rows = matrices.rows, columns = matrices.columns, basis = matrices.basis, least = matrices.smaller();
  const int64_t size = rows * columns + least + linalg::kMaxBlockWarps * rows;
  const int64_t at_once = std::min(matrices.count, linalg::kMaxBlocksAtOnce);
  double* const scratch = cuda.Allocate<double>(at_once * size);
  for (int64_t first = 0; first < matrices.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForBlocks<linalg::kMaxBlockThreads>(
        cuda, std::min(at_once, matrices.count - first), linalg::BlockThreads(rows * columns), 0,
        [=] POLYOP_DEVICE(Block& block) {
          const int64_t n = first + block.index;
          double *const work = scratch + block.index * size, *const taus = work + rows * columns,
                        *const spare = taus + least;
          linalg::ForElements(block, 0, rows, 0, columns, [&](int64_t i, int64_t j) {
            work[j * rows + i] = static_cast<double>(matrices.from[(n * rows + i) * columns + j]);
          });
          linalg::FactorQrInBlock(block, work, columns, rows, taus);
          linalg::ForEachByWarp(block, 0, basis, [&](int64_t k, int warp) {
            double* const column = spare + warp * rows;
            linalg::ColumnOfQInWarp(work, least, rows, taus, k, column);
            linalg::ForElementsOfWarp(
                0, rows, [&](int64_t i, int) { matrices.q[(n * rows + i) * basis + k] = static_cast<T>(column[i]); });
          });
          linalg::ForElements(block, 0, basis, 0, columns, [&](int64_t i, int64_t j) {
            matrices.r[(n * basis + i) * columns + j] = static_cast<T>(j < i ? 0 : work[j * rows + i]);
          });
        }));
  }
  return Status::Ok();
}

template <class T>
Status QrCuda(const Qr&, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> q,
              Tensor<T, kAnyRank> r) {
  const OrthogonalFactors<T> matrices(a, q, r);
  return matrices.smaller() > linalg::kMaxSizeOfThread ? FactorInBlocks(cuda, matrices)
                                                       : linalg::DecomposeInThreads(cuda, matrices);
}

POLYOP_CUDA_KERNELS(Qr, QrCuda, float, double);

}  // namespace
}  // namespace polyop
