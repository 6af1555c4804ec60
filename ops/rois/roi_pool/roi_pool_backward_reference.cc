// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rois/batch_indices.h"
#include "ops/rois/roi_pool/roi_pool_backward.h"

namespace polyop {
namespace {

Status RoiPoolBackwardReference(const RoiPoolBackward& op, const Context&, Tensor<const double, 4> grad_output,
                                Tensor<const double, 4> input, Tensor<const double, 2> rois,
                                Tensor<const int32_t, 4> argmax, Tensor<double, 4> grad_input) {
  const int64_t channels = input.dim(1), pixels = input.dim(2) * input.dim(3);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  POLYOP_RETURN_IF_ERROR(RoiPoolBackward::CheckArgmax(argmax, pixels));
  std::fill_n(grad_input.data(), grad_input.size(), 0.0);
  for (int64_t i = 0; i < grad_output.size(); ++i) {
    if (argmax[i] < 0) continue;
    const int64_t plane = i / op.output_width / op.output_height, r = plane / channels, c = plane % channels;
    grad_input[(static_cast<int64_t>(rois[5 * r]) * channels + c) * pixels + argmax[i]] += grad_output[i];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RoiPoolBackward, RoiPoolBackwardReference);

}  // namespace
}  // namespace polyop
