// SPDX-License-Identifier: Apache-2.0
#include "ops/scatter/scatter_nd/scatter_nd.h"
#include "ops/scatter/scatter_nd/scatter_nd_values.h"

namespace polyop {
namespace {

template <class T, class I>
Status ScatterNDReference(const ScatterND&, const Context&, Tensor<const T, kAnyRank> data,
                          Tensor<const I, kAnyRank> indices, Tensor<const T, kAnyRank> updates,
                          Tensor<T, kAnyRank> output) {
  for (int64_t i = 0; i < data.size(); ++i) output[i] = data[i];
  const int64_t depth = indices.dim(indices.rank() - 1);
  int64_t slice = 1, tuples = 1;
  for (int d = static_cast<int>(depth); d < data.rank(); ++d) slice *= data.dim(d);
  for (int d = 0; d + 1 < indices.rank(); ++d) tuples *= indices.dim(d);
  for (int64_t t = 0; t < tuples; ++t) {
    POLYOP_RETURN_IF_ERROR(
        CheckTuple(indices.data() + t * depth, t, data.shape().span().first(static_cast<size_t>(depth))));
    int64_t at = 0;
    for (int d = 0; d < depth; ++d) {
      const int64_t index = indices[t * depth + d];
      at = at * data.dim(d) + (index < 0 ? index + data.dim(d) : index);
    }
    for (int64_t i = 0; i < slice; ++i) output[at * slice + i] = updates[t * slice + i];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(ScatterND, ScatterNDReference, (double, int32_t), (double, int64_t), (uint8_t, int32_t),
                         (int64_t, int64_t));

}  // namespace
}  // namespace polyop
