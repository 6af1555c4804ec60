#include "families/points/gather_columns_cuda.h"
#include "ops/group_points/group_points.h"

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

POLYOP_CUDA_KERNEL(GroupPoints, GroupPointsF32I32, GroupPointsCuda<float, int32_t>);
POLYOP_CUDA_KERNEL(GroupPoints, GroupPointsF32I64, GroupPointsCuda<float, int64_t>);
POLYOP_CUDA_KERNEL(GroupPoints, GroupPointsF16I32, GroupPointsCuda<Half, int32_t>);
POLYOP_CUDA_KERNEL(GroupPoints, GroupPointsF16I64, GroupPointsCuda<Half, int64_t>);
POLYOP_CUDA_KERNEL(GroupPoints, GroupPointsBF16I32, GroupPointsCuda<BFloat16, int32_t>);
POLYOP_CUDA_KERNEL(GroupPoints, GroupPointsBF16I64, GroupPointsCuda<BFloat16, int64_t>);

}  // namespace
}  // namespace polyop
