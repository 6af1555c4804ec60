// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/check_indices.h"
#include "ops/sorting/gather_topk/gather_topk.h"

namespace polyop {
namespace {

template <class T, class I, int kRank>
Status GatherTopkReference(const GatherTopk&, const Context& context, Tensor<const T, kAnyRank> data,
                           Tensor<const I, kRank> indices, Tensor<T, kAnyRank> gathered) {
  POLYOP_RETURN_IF_ERROR(
      CheckIndices(context, "indices", indices.data(), indices.size(), data.dim(kRank - 1), "a row of 'data'"));
  int64_t row = 1;
  for (int d = kRank; d < data.rank(); ++d) row *= data.dim(d);
  for (int64_t i = 0; i < gathered.size(); ++i) {
    const int64_t pick = i / row, batch = pick / indices.dim(kRank - 1);
    gathered[i] = data[(batch * data.dim(kRank - 1) + indices[pick]) * row + i % row];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(GatherTopk, GatherTopkReference, (double, int32_t, 1), (double, int64_t, 1),
                         (double, int32_t, 2), (double, int64_t, 2), (double, int32_t, 3), (double, int64_t, 3),
                         (int64_t, int64_t, 1), (int64_t, int64_t, 2), (int64_t, int64_t, 3));

}  // namespace
}  // namespace polyop
