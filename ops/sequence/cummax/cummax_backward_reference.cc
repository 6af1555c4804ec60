// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/check_indices.h"
#include "ops/sequence/cummax/cummax_backward.h"

namespace polyop {
namespace {

Status CumMaxBackwardReference(const CumMaxBackward& op, const Context& context,
                               Tensor<const double, kAnyRank> grad_values, Tensor<const double, kAnyRank> input,
                               Tensor<const int64_t, kAnyRank> indices, Tensor<double, kAnyRank> grad_input) {
  const ScanExtents e = ScanExtents::Of(op.dim, input.shape());
  if (input.size() == 0) return Status::Ok();
  POLYOP_RETURN_IF_ERROR(
      CheckIndices(context, "indices", indices.data(), indices.size(), e.length, "an element of the dimension"));
  std::fill_n(grad_input.data(), grad_input.size(), 0.0);
  for (int64_t i = 0; i < grad_values.size(); ++i) {
    const int64_t line = i / (e.length * e.inner) * e.length * e.inner + i % e.inner;
    grad_input[line + indices[i] * e.inner] += grad_values[i];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CumMaxBackward, CumMaxBackwardReference);

}  // namespace
}  // namespace polyop
