#include <algorithm>

#include "ops/bev_pool/bev_pool.h"
#include "ops/bev_pool/bev_pool_values.h"

namespace polyop {
namespace {

template <class I>
Status BevPoolReference(const BevPool&, const Context&, Tensor<const double, 4> depth, Tensor<const double, 4> feat,
                        Tensor<const I, 1> ranks_depth, Tensor<const I, 1> ranks_feat, Tensor<const I, 1> ranks_bev,
                        Tensor<const I, 1> interval_starts, Tensor<const I, 1> interval_lengths,
                        Tensor<double, 4> bev) {
  const int64_t channels = bev.dim(3), pixels = feat.dim(0) * feat.dim(1) * feat.dim(2);
  const BevIntervals<I> intervals{interval_starts.data(), interval_lengths.data(), interval_starts.dim(0),
                                  ranks_bev.dim(0)};
  POLYOP_RETURN_IF_ERROR(intervals.Check());
  for (int64_t j = 0; j < intervals.count; ++j) {
    const int64_t first = interval_starts[j];
    if (interval_lengths[j] == 0) continue;
    POLYOP_RETURN_IF_ERROR(CheckCell(first, ranks_bev[first], bev.dim(1) * bev.dim(2)));
  }
  POLYOP_RETURN_IF_ERROR(CheckRanks("ranks_depth", intervals, ranks_depth, depth.size()));
  POLYOP_RETURN_IF_ERROR(CheckRanks("ranks_feat", intervals, ranks_feat, pixels));
  std::fill_n(bev.data(), bev.size(), 0.0);
  for (int64_t j = 0; j < interval_starts.dim(0); ++j) {
    const int64_t start = interval_starts[j], length = interval_lengths[j];
    if (length == 0) continue;
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t r = start; r < start + length; ++r) {
        sum += depth[ranks_depth[r]] * feat[ranks_feat[r] * channels + c];
      }
      bev[ranks_bev[start] * channels + c] = sum;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(BevPool, BevPoolF64I32, BevPoolReference<int32_t>);
POLYOP_REFERENCE_KERNEL(BevPool, BevPoolF64I64, BevPoolReference<int64_t>);

}  // namespace
}  // namespace polyop
