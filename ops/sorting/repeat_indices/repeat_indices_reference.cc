// SPDX-License-Identifier: Apache-2.0
#include "ops/sorting/repeat_indices/repeat_indices.h"
#include "ops/sorting/repeat_indices/repeat_indices_checks.h"

namespace polyop {
namespace {

template <class I>
Status RepeatIndicesReference(const RepeatIndices&, const Context& context, Tensor<const I, 1> repeats,
                              Tensor<const int64_t, 0>, Tensor<int64_t, 1> indices) {
  const int64_t count = repeats.dim(0), total = indices.dim(0);
  POLYOP_RETURN_IF_ERROR(CheckRepeats(context, repeats, total));
  if (SumOfRepeats(repeats, 0, count, total) != total) return WrongTotal(repeats, total);
  int64_t at = 0;
  for (int64_t k = 0; k < count; ++k) {
    for (I times = 0; times < repeats[k]; ++times) indices[at++] = k;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(RepeatIndices, RepeatIndicesReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
