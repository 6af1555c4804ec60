#include "core/words.h"
#include "families/points/gather_columns.h"
#include "ops/gather_points/gather_points.h"

namespace polyop {
namespace {

// Plain copies: there is nothing to compute, so the file is compiled once, for every processor.
template <class T, class I>
Status GatherPointsCpu(const GatherPoints&, const Context& context, Tensor<const T, 3> features, Tensor<const I, 2> idx,
                       Tensor<T, 3> gathered) {
  using Word = WordOf<T>;
  return ColumnGather<Word, I>{reinterpret_cast<const Word*>(features.data()),
                               idx.data(),
                               reinterpret_cast<Word*>(gathered.data()),
                               features.dim(0),
                               features.dim(1),
                               features.dim(2),
                               idx.dim(1)}
      .Run(context);
}

POLYOP_KERNEL(GatherPoints, Device::kCpu, GatherPointsF32I32, GatherPointsCpu<float, int32_t>);
POLYOP_KERNEL(GatherPoints, Device::kCpu, GatherPointsF32I64, GatherPointsCpu<float, int64_t>);
POLYOP_KERNEL(GatherPoints, Device::kCpu, GatherPointsF16I32, GatherPointsCpu<Half, int32_t>);
POLYOP_KERNEL(GatherPoints, Device::kCpu, GatherPointsF16I64, GatherPointsCpu<Half, int64_t>);
POLYOP_KERNEL(GatherPoints, Device::kCpu, GatherPointsBF16I32, GatherPointsCpu<BFloat16, int32_t>);
POLYOP_KERNEL(GatherPoints, Device::kCpu, GatherPointsBF16I64, GatherPointsCpu<BFloat16, int64_t>);

}  // namespace
}  // namespace polyop
