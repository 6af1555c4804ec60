// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/cuda.h"
#include "ops/linalg/svd/svd_block_cuda.h"
#include "ops/linalg/svd/svd_of_matrix.h"

namespace polyop {
namespace {

// Each block decomposes one matrix in scratch memory.
template <class T>
Status DecomposeInBlocks(const CudaContext& cuda, const MatricesToDecompose<T>& matrices) {
  const int64_t longer = matrices.longer, shorter = matrices.shorter, size = svd::BlockParts::Size(longer, shorter);
  const int64_t at_once = std::min(matrices.count, linalg::kMaxBlocksAtOnce);
  double* const scratch = cuda.Allocate<double>(at_once * size);
  for (int64_t first = 0; first < matrices.count; first += at_once) {
    POLYOP_RETURN_IF_ERROR(ForBlocks<linalg::kMaxBlockThreads>(
        cuda, std::min(at_once, matrices.count - first), linalg::BlockThreads(longer * shorter),
        linalg::BlockEigenShared::kBytes, [=] POLYOP_DEVICE(Block& block) {
          const linalg::BlockEigenShared shared(block);
          const svd::BlockParts parts(scratch + block.index * size, longer, shorter);
          svd::DecomposeInBlock(block, first + block.index, matrices, parts, shared);
        }));
  }
  return Status::Ok();
}

template <class T>
Status SvdCuda(const Svd& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> u,
               Tensor<T, kAnyRank> s, Tensor<T, kAnyRank> vh) {
  const MatricesToDecompose<T> matrices(op, a, u, s, vh);
  return matrices.shorter > linalg::kMaxSizeOfThread ? DecomposeInBlocks(cuda, matrices)
                                                     : linalg::DecomposeInThreads(cuda, matrices);
}

POLYOP_CUDA_KERNELS(Svd, SvdCuda, float, double);

}  // namespace
}  // namespace polyop
