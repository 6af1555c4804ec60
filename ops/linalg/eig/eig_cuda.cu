// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/linalg/block_elimination_cuda.h"
#include "ops/linalg/eig/eig_of_matrix.h"

namespace polyop {
namespace {

template <class T>
Status EigCuda(const Eig& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<T, kAnyRank> values,
               Tensor<T, kAnyRank> basis) {
  return linalg::DecomposeInThreads(cuda, GeneralMatrices<T>(op, a, values, basis));
}

POLYOP_CUDA_KERNELS(Eig, EigCuda, float, double);

}  // namespace
}  // namespace polyop
