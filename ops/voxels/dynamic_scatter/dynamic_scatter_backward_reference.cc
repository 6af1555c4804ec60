// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/voxels/dynamic_scatter/dynamic_scatter_backward.h"
#include "ops/voxels/dynamic_scatter/point_voxels.h"

namespace polyop {
namespace {

template <class I>
Status DynamicScatterBackwardReference(const DynamicScatterBackward& op, const Context&, Tensor<const double, 2> grad,
                                       Tensor<const double, 2> feats, Tensor<const I, 2>,
                                       Tensor<const double, 2> voxel_feats, Tensor<const int32_t, 1> point2voxel,
                                       Tensor<double, 2> grad_feats) {
  const int64_t channels = feats.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckPointVoxels(point2voxel, voxel_feats.dim(0)));
  std::vector<double> counts(static_cast<size_t>(voxel_feats.dim(0)));
  for (int64_t i = 0; i < feats.dim(0); ++i) {
    if (point2voxel[i] >= 0) ++counts[static_cast<size_t>(point2voxel[i])];
  }
  std::vector<bool> given(static_cast<size_t>(voxel_feats.size()));  // to the first point that attains the maximum
  for (int64_t i = 0; i < feats.size(); ++i) {
    const int64_t voxel = point2voxel[i / channels], at = voxel * channels + i % channels;
    grad_feats[i] = 0;
    if (voxel < 0) continue;
    if (op.reduce_type != DynamicScatter::Reduce::kMax) {
      const bool mean = op.reduce_type == DynamicScatter::Reduce::kMean;
      grad_feats[i] = grad[at] / (mean ? counts[static_cast<size_t>(voxel)] : 1);
    } else if (!given[static_cast<size_t>(at)] && (feats[i] == voxel_feats[at] || std::isnan(feats[i]))) {
      given[static_cast<size_t>(at)] = true;
      grad_feats[i] = grad[at];
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(DynamicScatterBackward, DynamicScatterBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
