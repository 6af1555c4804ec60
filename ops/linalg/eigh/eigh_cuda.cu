// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "ops/linalg/block_eigen_cuda.h"
#include "ops/linalg/eigh/eigh_of_matrix.h"

namespace polyop {
namespace {

// Each block decomposes one matrix in scratch memory.
template <class T>
Status DecomposeInBlocks(const CudaContext& cuda, const SymmetricMatrices<T>& matrices) {
  const int64_t size = matrices.size, area = size * size;
  const int64_t work_size = 2 * area + 2 * size + linalg::BlockEigenWork(size);
  const int64_t at_once = std::min(matrices.count, linalg::kMaxBlocksAtOnce);
  double* const scratch = cuda.Allocate<double>(at_once * work_size);
  for (int64_t first = 0; first < matrices.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForBlocks<linalg::kMaxBlockThreads>(
        cuda, std::min(at_once, matrices.count - first), linalg::BlockThreads(area), linalg::BlockEigenShared::kBytes,
        [=] POLYOP_DEVICE(Block& block) {
          const linalg::BlockEigenShared shared(block);
          const int64_t n = first + block.index;
          double *const a = scratch + block.index * work_size, *const rows = a + area, *const values = rows + area,
                        *const order = values + size, *const work = order + size;
          linalg::ForElements(block, 0, size, 0, size, [&](int64_t i, int64_t j) {
            a[i * size + j] = i > j ? matrices.ElementOfTriangle(n, i, j) : matrices.ElementOfTriangle(n, j, i);
          });
          const double scale = linalg::ScaleInBlock(block, a, area, shared);
          const bool converged =
              scale > 0 && linalg::SymmetricEigenInBlock(block, a, scale, size, values, order,
                                                         matrices.with_vectors ? rows : nullptr, work, shared);
          linalg::ForEachByWarp(block, 0, size, [&](int64_t k, int) {
            linalg::ForElementsOfWarp(k, k + 1, [&](int64_t i, int) {
              matrices.values[n * size + i] = static_cast<T>(converged ? values[i] : NAN);
            });
            if (!matrices.with_vectors) return;
            const double* const row = rows + (converged ? static_cast<int64_t>(order[k]) : k) * size;
            const double sign = converged ? linalg::SignInWarp(row, size) : NAN;
            linalg::ForElementsOfWarp(0, size, [&](int64_t i, int) {
              matrices.basis[n * area + i * size + k] = static_cast<T>(converged ? sign * row[i] : NAN);
            });
          });
        }));
  }
  return Status::Ok();
}

template <class T>
Status EighCuda(const Eigh& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> values,
                Tensor<T, kAnyRank> basis) {
  const SymmetricMatrices<T> matrices(op, a, values, basis);
  return matrices.size > linalg::kMaxSizeOfThread ? DecomposeInBlocks(cuda, matrices)
                                                  : linalg::DecomposeInThreads(cuda, matrices);
}

POLYOP_CUDA_KERNELS(Eigh, EighCuda, float, double);

}  // namespace
}  // namespace polyop
