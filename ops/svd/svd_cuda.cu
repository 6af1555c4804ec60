#include "kernels/cuda/cuda.h"
#include "ops/svd/svd_block_cuda.h"
#include "ops/svd/svd_of_matrix.h"

namespace polyop {
namespace {

// Each block decomposes one matrix in scratch memory.
template <class T>
Status DecomposeInBlocks(const CudaContext& cuda, const MatricesToDecompose<T>& matrices) {
  const int64_t longer = matrices.longer, shorter = matrices.shorter, size = svd::BlockParts::Size(longer, shorter);
  double* const scratch = cuda.Allocate<double>(matrices.count * size);
  return ForBlocks<linalg::kMaxBlockThreads>(cuda, matrices.count, linalg::BlockThreads(longer * shorter),
                                             linalg::BlockEigenShared::kBytes, [=] POLYOP_DEVICE(Block& block) {
                                               const linalg::BlockEigenShared shared(block);
                                               const svd::BlockParts parts(scratch + block.index * size, longer,
                                                                           shorter);
                                               svd::DecomposeInBlock(block, matrices, parts, shared);
                                             });
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
