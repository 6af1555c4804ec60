#include <algorithm>

#include "kernels/cpu/check_indices.h"
#include "ops/gather_points/gather_points_backward.h"

namespace polyop {
namespace {

template <class I>
Status GatherPointsBackwardReference(const GatherPointsBackward&, const Context& context,
                                     Tensor<const double, 3> grad_output, Tensor<const double, 3> features,
                                     Tensor<const I, 2> idx, Tensor<double, 3> grad_features) {
  const int64_t channels = features.dim(1), columns = features.dim(2), picks = idx.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckIndices(context, "idx", idx.data(), idx.size(), columns, "a column of 'features'"));
  std::fill_n(grad_features.data(), grad_features.size(), 0.0);
  for (int64_t i = 0; i < grad_output.size(); ++i) {
    const int64_t row = i / picks, batch = row / channels;
    grad_features[row * columns + idx[batch * picks + i % picks]] += grad_output[i];
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(GatherPointsBackward, GatherPointsBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
