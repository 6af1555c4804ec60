// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/bev/bev_intervals.h"
#include "ops/bev/quick_cumsum/quick_cumsum.h"
#include "ops/bev/quick_cumsum/quick_cumsum_values.h"

namespace polyop {
namespace {

template <class I>
Status QuickCumsumReference(const QuickCumsum& op, const Context&, Tensor<const double, 2> x,
                            Tensor<const I, 2> geom_feats, Tensor<const I, 1> interval_lengths,
                            Tensor<const I, 1> interval_starts, Tensor<double, 5> bev) {
  const int64_t channels = x.dim(1);
  const BevIntervals<I> intervals{interval_starts.data(), interval_lengths.data(), interval_starts.dim(0), x.dim(0)};
  POLYOP_RETURN_IF_ERROR(intervals.Check());
  std::fill_n(bev.data(), bev.size(), 0.0);
  for (int64_t j = 0; j < interval_starts.dim(0); ++j) {
    const int64_t start = interval_starts[j], length = interval_lengths[j];
    if (length == 0) continue;
    const I* const position = geom_feats.data() + 4 * (start + length - 1);
    POLYOP_RETURN_IF_ERROR(CheckPosition(start + length - 1, position, bev.shape()));
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t p = start; p < start + length; ++p) sum += x[p * channels + c];
      const int64_t layer = position[3] * op.dimension + position[2],
                    cell = (layer * op.height + position[0]) * op.width + position[1];
      bev[cell * channels + c] = sum;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(QuickCumsum, QuickCumsumReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
