// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "ops/points/gather_columns.h"
#include "ops/points/gather_points/gather_points.h"

namespace polyop {
namespace {

// The kernel only copies, so this file is compiled once and not for every instruction set.
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

POLYOP_PLAIN_CPU_KERNELS(GatherPoints, GatherPointsCpu, (float, int32_t), (float, int64_t), (Half, int32_t),
                         (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
