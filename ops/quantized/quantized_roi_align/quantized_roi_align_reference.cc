// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized/quantized_reference.h"
#include "ops/quantized/quantized_roi_align/quantized_roi_align.h"
#include "ops/rois/onnx_roi_reference.h"

namespace polyop {
namespace {

template <class I>
Status QuantizedRoiAlignReference(const QuantizedRoiAlign& op, const Context&, Tensor<const I, 4> x,
                                  Tensor<const float, 2> rois, Tensor<const int64_t, 1> batch_indices, Tensor<I, 4> y) {
  const auto real = reference::Dequantized(op, x);
  auto result = reference::ResultsFor(y);
  const std::vector<double> boxes(rois.data(), rois.data() + rois.size());
  POLYOP_RETURN_IF_ERROR(
      reference::OnnxRoiAlign(op, real.view(), {boxes.data(), rois.shape()}, batch_indices, result.view()));
  reference::Quantize(op, result, y);
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(QuantizedRoiAlign, QuantizedRoiAlignReference, int8_t, uint8_t);

}  // namespace
}  // namespace polyop
