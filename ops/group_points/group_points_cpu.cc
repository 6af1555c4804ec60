#include "core/words.h"
#include "families/points/gather_columns.h"
#include "ops/group_points/group_points.h"

namespace polyop {
namespace {

// Plain copies: there is nothing to compute, so the file is compiled once, for every processor.
template <class T, class I>
Status GroupPointsCpu(const GroupPoints&, const Context& context, Tensor<const T, 3> features, Tensor<const I, 3> idx,
                      Tensor<T, 4> grouped) {
  using Word = WordOf<T>;
  return ColumnGather<Word, I>{reinterpret_cast<const Word*>(features.data()),
                               idx.data(),
                               reinterpret_cast<Word*>(grouped.data()),
                               features.dim(0),
                               features.dim(1),
                               features.dim(2),
                               idx.dim(1) * idx.dim(2)}
      .Run(context);
}

POLYOP_KERNEL(GroupPoints, Device::kCpu, GroupPointsF32I32, GroupPointsCpu<float, int32_t>);
POLYOP_KERNEL(GroupPoints, Device::kCpu, GroupPointsF32I64, GroupPointsCpu<float, int64_t>);
POLYOP_KERNEL(GroupPoints, Device::kCpu, GroupPointsF16I32, GroupPointsCpu<Half, int32_t>);
POLYOP_KERNEL(GroupPoints, Device::kCpu, GroupPointsF16I64, GroupPointsCpu<Half, int64_t>);
POLYOP_KERNEL(GroupPoints, Device::kCpu, GroupPointsBF16I32, GroupPointsCpu<BFloat16, int32_t>);
POLYOP_KERNEL(GroupPoints, Device::kCpu, GroupPointsBF16I64, GroupPointsCpu<BFloat16, int64_t>);

}  // namespace
}  // namespace polyop
