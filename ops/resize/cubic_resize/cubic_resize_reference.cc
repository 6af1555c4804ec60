// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/cubic_resize_reference.h"
#include "ops/resize/cubic_resize/cubic_resize.h"

namespace polyop {
namespace {

Status CubicResizeReference(const CubicResize& op, const Context&, Tensor<const double, 4> input,
                            Tensor<const int64_t, 1>, Tensor<double, 4> output) {
  return reference::ResizeCubic(op, input, output);
}
POLYOP_REFERENCE_KERNEL(CubicResize, CubicResizeReference);

}  // namespace
}  // namespace polyop
