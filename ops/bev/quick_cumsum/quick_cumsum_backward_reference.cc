// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "ops/bev/quick_cumsum/quick_cumsum_backward.h"
#include "ops/bev/quick_cumsum/quick_cumsum_values.h"

namespace polyop {
namespace {

template <class I>
Status QuickCumsumBackwardReference(const QuickCumsumBackward&, const Context&, Tensor<const double, 5> grad_bev,
                                    Tensor<const double, 2> x, Tensor<const I, 2> geom_feats,
                                    Tensor<const I, 1> lengths, Tensor<const I, 1> starts, Tensor<double, 2> grad_x) {
  const BevIntervals<I> intervals{starts.data(), lengths.data(), starts.dim(0), x.dim(0)};
  POLYOP_RETURN_IF_ERROR(intervals.Check());
  std::map<int64_t, int64_t> owners;  // the last interval of each cell
  for (int64_t j = 0; j < intervals.count; ++j) {
    int64_t cell = 0;
    if (lengths[j] == 0) continue;
    POLYOP_RETURN_IF_ERROR(FindCell(intervals, j, geom_feats.data(), grad_bev.shape(), &cell));
    owners[cell] = j;
  }
  const int64_t channels = x.dim(1);
  std::fill_n(grad_x.data(), grad_x.size(), 0.0);
  for (const auto& [cell, j] : owners) {
    for (int64_t i = 0; i < lengths[j] * channels; ++i) {
      grad_x[starts[j] * channels + i] += grad_bev[cell * channels + i % channels];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(QuickCumsumBackward, QuickCumsumBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
