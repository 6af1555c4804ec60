#include <algorithm>

#include "ops/quick_cumsum/quick_cumsum.h"

namespace polyop {
namespace {

template <class I>
Status QuickCumsumReference(const QuickCumsum& op, const Context&, Tensor<const double, 2> x,
                            Tensor<const I, 2> geom_feats, Tensor<const I, 1> interval_lengths,
                            Tensor<const I, 1> interval_starts, Tensor<double, 5> bev) {
  const int64_t channels = x.dim(1);
  std::fill_n(bev.data(), bev.size(), 0.0);
  for (int64_t j = 0; j < interval_starts.dim(0); ++j) {
    const int64_t start = interval_starts[j], length = interval_lengths[j];
    if (start < 0 || length < 0 || start > x.dim(0) || length > x.dim(0) - start) {
      return InvalidArgument("interval ", j, " does not lie within the points");
    }
    if (length == 0) continue;
    const I* const place = geom_feats.data() + 4 * (start + length - 1);
    const int64_t limits[4] = {op.height, op.width, op.dimension, op.batch_size};
    for (int k = 0; k < 4; ++k) {
      if (place[k] < 0 || place[k] >= limits[k]) return InvalidArgument("'geom_feats' leaves the volume");
    }
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t p = start; p < start + length; ++p) sum += x[p * channels + c];
      const int64_t layer = place[3] * op.dimension + place[2],
                    cell = (layer * op.height + place[0]) * op.width + place[1];
      bev[cell * channels + c] = sum;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(QuickCumsum, QuickCumsumF64I32, QuickCumsumReference<int32_t>);
POLYOP_REFERENCE_KERNEL(QuickCumsum, QuickCumsumF64I64, QuickCumsumReference<int64_t>);

}  // namespace
}  // namespace polyop
