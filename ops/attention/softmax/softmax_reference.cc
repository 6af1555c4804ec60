// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attention/softmax/softmax.h"

namespace polyop {
namespace {

Status SoftmaxReference(const Softmax& op, const Context&, Tensor<const double, kAnyRank> x,
                        Tensor<double, kAnyRank> y) {
  const Shape& shape = x.shape();
  const int axis = static_cast<int>(op.axis < 0 ? op.axis + shape.rank() : op.axis);
  int64_t step = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) step *= shape[d];
  for (int64_t first = 0; first < x.size(); ++first) {
    if (first / step % shape[axis] != 0) continue;
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < shape[axis]; ++i) max = std::fmax(max, x[first + i * step]);
    for (int64_t i = 0; i < shape[axis]; ++i) sum += std::exp(x[first + i * step] - max);
    for (int64_t i = 0; i < shape[axis]; ++i) {
      const double difference = x[first + i * step] - max;
      y[first + i * step] = op.log != 0 ? difference - std::log(sum) : std::exp(difference) / sum;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Softmax, SoftmaxReference);

}  // namespace
}  // namespace polyop
