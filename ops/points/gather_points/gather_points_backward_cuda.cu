// SPDX-License-Identifier: Apache-2.0
#include "ops/points/gather_points/gather_points_backward.h"
#include "ops/points/scatter_columns_cuda.h"

namespace polyop {
namespace {

template <class T, class I>
Status GatherPointsBackwardCuda(const GatherPointsBackward&, const CudaContext& cuda, Tensor<const T, 3> grad_gathered,
                                Tensor<const T, 3> features, Tensor<const I, 2> idx, Tensor<T, 3> grad_features) {
  return ScatterColumnsCuda<T>(cuda, grad_gathered.data(), idx.data(), nullptr, features.dim(0), features.dim(1),
                               idx.dim(1), 1, features.dim(2), grad_features.data());
}

POLYOP_CUDA_KERNELS(GatherPointsBackward, GatherPointsBackwardCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
