#include "ops/scaled_rows/scaled_rows.h"

namespace polyop {
namespace {

Status ScaledRowsReference(const ScaledRows& op, const Context&, Tensor<const double, 2> x,
                           Tensor<const double, 1> weight, Tensor<double, 2> y, Tensor<int64_t, 1> row) {
  for (int64_t n = 0; n < x.dim(0); ++n) {
    for (int64_t c = 0; c < x.dim(1); ++c) y[n * x.dim(1) + c] = x[n * x.dim(1) + c] * weight[n] + op.shift;
    row[n] = n;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(ScaledRows, ScaledRowsReference);

}  // namespace
}  // namespace polyop
