// SPDX-License-Identifier: Apache-2.0
#include "ops/points/ball_cuda.h"
#include "ops/points/ball_query/ball_query.h"

namespace polyop {
namespace {

template <class T>
Status BallQueryCuda(const BallQuery& op, const CudaContext& cuda, Tensor<const T, 3> xyz, Tensor<const T, 3> centres,
                     Tensor<int32_t, 3> idx) {
  const RepeatingFirstSearch<T, BatchRanges> search = {
      centres.data(), BatchRanges(xyz.dim(1), centres.dim(1)), op.Rule(), op.sample_num, 0, idx.data()};
  return ForTilesByWarp(cuda, xyz.data(), xyz.dim(0) * xyz.dim(1), centres.dim(0) * centres.dim(1),
                        RepeatingFirstWarpSearch<T, BatchRanges>{search});
}

POLYOP_CUDA_KERNELS(BallQuery, BallQueryCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
