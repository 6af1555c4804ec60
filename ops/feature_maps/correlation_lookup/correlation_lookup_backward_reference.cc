// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/feature_maps/correlation_lookup/correlation_lookup_backward.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup_window.h"

namespace polyop {
namespace {

Status CorrelationLookupBackwardReference(const CorrelationLookupBackward& op, const Context&,
                                          Tensor<const double, 4> grad_output, Tensor<const double, 5> volume,
                                          Tensor<const double, 4> coords, Tensor<double, 5> grad_volume) {
  const int64_t pixels = volume.dim(1) * volume.dim(2), rows = volume.dim(3), columns = volume.dim(4);
  const int64_t down = 2 * op.radius[0] + 1, across = 2 * op.radius[1] + 1;
  std::fill_n(grad_volume.data(), grad_volume.size(), 0.0);
  for (int64_t element = 0; element < grad_output.size(); ++element) {
    const int64_t pixel = element % pixels, channel = element / pixels % (down * across);
    const int64_t n = element / pixels / (down * across);
    double* const map = grad_volume.data() + (n * pixels + pixel) * rows * columns;
    const double x = coords[(n * 2) * pixels + pixel], y = coords[(n * 2 + 1) * pixels + pixel];
    LookupWindow horizontal, vertical;
    if (!FindLookupWindow(x, op.radius[1], columns, &horizontal)) continue;
    if (!FindLookupWindow(y, op.radius[0], rows, &vertical)) continue;
    const double right = static_cast<double>(horizontal.fraction), below = static_cast<double>(vertical.fraction);
    for (int64_t corner = 0; corner < 4; ++corner) {
      const int64_t row = vertical.first + channel % down + corner / 2;
      const int64_t column = horizontal.first + channel / down + corner % 2;
      if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
      map[row * columns + column] +=
          grad_output[element] * (corner / 2 ? below : 1 - below) * (corner % 2 ? right : 1 - right);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(CorrelationLookupBackward, CorrelationLookupBackwardReference);

}  // namespace
}  // namespace polyop
