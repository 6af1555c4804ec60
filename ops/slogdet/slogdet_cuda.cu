#include "families/linalg/block_elimination_cuda.h"
#include "kernels/cuda/cuda.h"
#include "ops/slogdet/determinant.h"
#include "ops/slogdet/slogdet.h"

namespace polyop {
namespace {

// Each block factors one matrix, in shared memory if it fits.
template <class T>
Status DeterminantsInBlocks(const CudaContext& cuda, const MatricesWithDeterminants<T>& matrices) {
  const int64_t rows = matrices.size, stride = linalg::SharedStride(rows), size = rows * stride;
  const bool in_shared = size <= linalg::kMaxSharedElements;
  double* const scratch = in_shared ? nullptr : cuda.Allocate<double>(matrices.count * size);
  int32_t* const all_pivots = cuda.Allocate<int32_t>(matrices.count * rows);
  const int64_t bytes = (in_shared ? size * 8 : 0) + 32;
  return ForBlocks<linalg::kMaxBlockThreads>(
      cuda, matrices.count, linalg::BlockThreads(rows * rows), bytes, [=] POLYOP_DEVICE(Block& block) {
        const int64_t n = block.index;
        int64_t* const pivot_row = block.Shared<int64_t>(1);
        double* const a = in_shared ? block.Shared<double>(static_cast<int>(size)) : scratch + n * size;
        int32_t* const pivots = all_pivots + n * rows;
        const T* const from = matrices.from + n * rows * rows;
        linalg::ForElements(block, 0, rows, 0, rows,
                            [&](int64_t i, int64_t j) { a[i * stride + j] = static_cast<double>(from[i * rows + j]); });
        linalg::FactorLuInBlock(block, a, rows, rows, stride, pivots, pivot_row);
        block.ForThreads([&](int t) {
          if (t == 0) matrices.Write(n, a, stride, pivots);
        });
      });
}

template <class T>
Status SlogdetCuda(const Slogdet&, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> sign,
                   Tensor<T, kAnyRank> logabsdet) {
  const MatricesWithDeterminants<T> matrices(a, sign, logabsdet);
  const int64_t size = matrices.size;
  if (size > linalg::kMaxSizeOfThread) return DeterminantsInBlocks(cuda, matrices);
  double* const work = cuda.Allocate<double>(matrices.count * size * size);
  int32_t* const pivots = cuda.Allocate<int32_t>(matrices.count * size);
  return ForEach(cuda, matrices.count,
                 [=] POLYOP_DEVICE(int64_t n) { matrices.Compute(n, work + n * size * size, pivots + n * size); });
}

POLYOP_CUDA_KERNELS(Slogdet, SlogdetCuda, float, double);

}  // namespace
}  // namespace polyop
