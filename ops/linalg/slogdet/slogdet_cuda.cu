// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "ops/linalg/block_elimination_cuda.h"
#include "ops/linalg/slogdet/determinant.h"
#include "ops/linalg/slogdet/slogdet.h"

namespace polyop {
namespace {

// Each block factors one matrix, in shared memory if it fits.
template <class T>
Status DeterminantsInBlocks(const CudaContext& cuda, const MatricesWithDeterminants<T>& matrices) {
  const int64_t rows = matrices.size, stride = linalg::SharedStride(rows), size = rows * stride;
  const bool in_shared = size <= linalg::kMaxSharedElements;
  const int64_t at_once = std::min(matrices.count, linalg::kMaxBlocksAtOnce);
  double* const scratch = in_shared ? nullptr : cuda.Allocate<double>(at_once * size);
  int32_t* const all_pivots = cuda.Allocate<int32_t>(at_once * rows);
  const int64_t bytes = (in_shared ? size * 8 : 0) + 32;
  for (int64_t first = 0; first < matrices.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForBlocks<linalg::kMaxBlockThreads>(
        cuda, std::min(at_once, matrices.count - first), linalg::BlockThreads(rows * rows), bytes,
        [=] POLYOP_DEVICE(Block& block) {
          const int64_t n = first + block.index;
          int64_t* const pivot_row = block.Shared<int64_t>(1);
          double* const a = in_shared ? block.Shared<double>(static_cast<int>(size)) : scratch + block.index * size;
          int32_t* const pivots = all_pivots + block.index * rows;
          const T* const from = matrices.from + n * rows * rows;
          linalg::ForElements(block, 0, rows, 0, rows, [&](int64_t i, int64_t j) {
            a[i * stride + j] = static_cast<double>(from[i * rows + j]);
          });
          linalg::FactorLuInBlock(block, a, rows, rows, stride, pivots, pivot_row);
          block.ForThreads([&](int t) {
            if (t == 0) matrices.Write(n, a, stride, pivots);
          });
        }));
  }
  return Status::Ok();
}

template <class T>
Status SlogdetCuda(const Slogdet&, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> sign,
                   Tensor<T, kAnyRank> logabsdet) {
  const MatricesWithDeterminants<T> matrices(a, sign, logabsdet);
  const int64_t size = matrices.size;
  if (size > linalg::kMaxSizeOfThread) return DeterminantsInBlocks(cuda, matrices);
  const int64_t at_once = std::min(matrices.count, linalg::kMaxThreadsAtOnce);
  double* const work = cuda.Allocate<double>(at_once * size * size);
  int32_t* const pivots = cuda.Allocate<int32_t>(at_once * size);
  for (int64_t first = 0; first < matrices.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForEach(cuda, std::min(at_once, matrices.count - first), [=] POLYOP_DEVICE(int64_t i) {
      matrices.Compute(first + i, work + i * size * size, pivots + i * size);
    }));
  }
  return Status::Ok();
}

POLYOP_CUDA_KERNELS(Slogdet, SlogdetCuda, float, double);

}  // namespace
}  // namespace polyop
