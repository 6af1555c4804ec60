#include <algorithm>

#include "ops/bev_pool/bev_pool.h"

namespace polyop {
namespace {

template <class I>
bool IsRank(I rank, int64_t limit) {
  return rank >= 0 && rank < limit;
}

template <class I>
Status BevPoolReference(const BevPool&, const Context&, Tensor<const double, 4> depth, Tensor<const double, 4> feat,
                        Tensor<const I, 1> ranks_depth, Tensor<const I, 1> ranks_feat, Tensor<const I, 1> ranks_bev,
                        Tensor<const I, 1> interval_starts, Tensor<const I, 1> interval_lengths,
                        Tensor<double, 4> bev) {
  const int64_t channels = bev.dim(3), pixels = feat.dim(0) * feat.dim(1) * feat.dim(2);
  std::fill_n(bev.data(), bev.size(), 0.0);
  for (int64_t j = 0; j < interval_starts.dim(0); ++j) {
    const int64_t start = interval_starts[j], length = interval_lengths[j];
    if (start < 0 || length < 0 || start > ranks_bev.dim(0) || length > ranks_bev.dim(0) - start) {
      return InvalidArgument("interval ", j, " does not lie within the ranks");
    }
    if (length == 0) continue;
    if (!IsRank(ranks_bev[start], bev.dim(1) * bev.dim(2))) return InvalidArgument("'ranks_bev' leaves the view");
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t r = start; r < start + length; ++r) {
        if (!IsRank(ranks_depth[r], depth.size())) return InvalidArgument("'ranks_depth' leaves 'depth'");
        if (!IsRank(ranks_feat[r], pixels)) return InvalidArgument("'ranks_feat' leaves 'feat'");
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
