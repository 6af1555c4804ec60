// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/onnx_roi_align/onnx_roi_align.h"
#include "ops/rois/onnx_roi_reference.h"

namespace polyop {
namespace {

Status OnnxRoiAlignReference(const OnnxRoiAlign& op, const Context&, Tensor<const double, 4> x,
                             Tensor<const double, 2> rois, Tensor<const int64_t, 1> batch_indices,
                             Tensor<double, 4> y) {
  return reference::OnnxRoiAlign(op, x, rois, batch_indices, y);
}
POLYOP_REFERENCE_KERNEL(OnnxRoiAlign, OnnxRoiAlignReference);

}  // namespace
}  // namespace polyop
