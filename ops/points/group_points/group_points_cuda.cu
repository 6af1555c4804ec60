// SPDX-License-Identifier: Apache-2.0
#include "ops/points/gather_columns_cuda.h"
#include "ops/points/group_points/group_points.h"

namespace polyop {
namespace {

template <class T, class I>
Status GroupPointsCuda(const GroupPoints&, const CudaContext& cuda, Tensor<const T, 3> features, Tensor<const I, 3> idx,
                       Tensor<T, 4> grouped) {
  using Word = WordOf<T>;
  return GatherColumns(cuda, reinterpret_cast<const Word*>(features.data()), idx.data(), features.dim(1),
                       features.dim(2), idx.dim(1) * idx.dim(2), NanWord<Word, T>(),
                       reinterpret_cast<Word*>(grouped.data()), grouped.size());
}

POLYOP_CUDA_KERNELS(GroupPoints, GroupPointsCuda, (float, int32_t), (float, int64_t), (Half, int32_t), (Half, int64_t),
                    (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
