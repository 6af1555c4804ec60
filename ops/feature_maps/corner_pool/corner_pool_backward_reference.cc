// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/feature_maps/corner_pool/corner_pool_backward.h"

namespace polyop {
namespace {

Status CornerPoolBackwardReference(const CornerPoolBackward& op, const Context&, Tensor<const double, 4> grad_output,
                                   Tensor<const double, 4> input, Tensor<double, 4> grad_input) {
  const int64_t height = input.dim(2), width = input.dim(3);
  const bool vertical = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kBottom;
  const bool to_start = op.mode == CornerPool::Mode::kTop || op.mode == CornerPool::Mode::kLeft;
  const int64_t length = vertical ? height : width, step = vertical ? width : 1;
  std::fill_n(grad_input.data(), grad_input.size(), 0.0);
  for (int64_t first = 0; first < input.size(); ++first) {
    if (first / step % length != 0) continue;  // not the first element of a line
    int64_t best = -1;
    for (int64_t k = 0; k < length; ++k) {
      const int64_t at = first + (to_start ? length - 1 - k : k) * step;
      if (best < 0 || std::isnan(input[at]) || input[at] >= input[best]) best = at;
      grad_input[best] += grad_output[at];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CornerPoolBackward, CornerPoolBackwardReference);

}  // namespace
}  // namespace polyop
