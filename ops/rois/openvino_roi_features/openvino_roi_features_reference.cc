// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/openvino_roi_features/openvino_roi_features.h"
#include "ops/rois/roi_pool_reference.h"

namespace polyop {
namespace {

Status OpenvinoRoiFeaturesReference(const OpenvinoRoiFeatures& op, const Context&, Tensor<const double, 2> rois,
                                    TensorList<const double, 4> feats, Tensor<double, 4> features) {
  const int64_t bins = features.dim(1) * op.output_size * op.output_size;
  for (int64_t r = 0; r < rois.dim(0); ++r) {
    const double* roi = rois.data() + 4 * r;
    const auto box_at = [&](double scale) {
      return reference::PooledBox::Upright(roi[0], roi[1], roi[2], roi[3], scale, op.aligned);
    };
    reference::PoolFromLevel(op.Rule(), roi[2] - roi[0], roi[3] - roi[1], box_at, true, feats, 0,
                             features.data() + r * bins);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(OpenvinoRoiFeatures, OpenvinoRoiFeaturesReference);

}  // namespace
}  // namespace polyop
