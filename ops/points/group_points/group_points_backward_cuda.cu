// SPDX-License-Identifier: Apache-2.0
#include "ops/points/group_points/group_points_backward.h"
#include "ops/points/scatter_columns_cuda.h"

namespace polyop {
namespace {

template <class T, class I>
Status GroupPointsBackwardCuda(const GroupPointsBackward&, const CudaContext& cuda, Tensor<const T, 4> grad_grouped,
                               Tensor<const T, 3> features, Tensor<const I, 3> idx, Tensor<T, 3> grad_features) {
  return ScatterColumnsCuda<T>(cuda, grad_grouped.data(), idx.data(), nullptr, features.dim(0), features.dim(1),
                               idx.dim(1) * idx.dim(2), 1, features.dim(2), grad_features.data());
}

POLYOP_CUDA_KERNELS(GroupPointsBackward, GroupPointsBackwardCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
