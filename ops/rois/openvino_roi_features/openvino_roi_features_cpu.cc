// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ops/rois/openvino_roi_features/openvino_roi_features.h"
#include "ops/rois/upright_pool.h"

namespace polyop {
namespace {

template <class T>
Status OpenvinoRoiFeaturesCpu(const OpenvinoRoiFeatures& op, const Context& context, Tensor<const T, 2> rois,
                              TensorList<const T, 4> feats, Tensor<T, 4> features) {
  const RoiPyramidRule rule = op.Rule();
  std::array<RoiLevel<T>, TensorList<const T, 4>::kMax> levels;
  PyramidLevels(rule.featmap_strides, feats, levels.data());
  const UprightRois<T> boxes{.rows = rois.data(),
                             .finest_scale = static_cast<double>(rule.finest_scale),
                             .levels = feats.size(),
                             .of_one_image = true};
  const RoiPooling how{rule.output_height, rule.output_width, rule.sampling_ratio, rule.aligned, true};
  return PoolRois<T>(context, {levels.data(), static_cast<size_t>(feats.size())}, feats[0].dim(1), rois.dim(0), boxes,
                     how, features.data());
}

POLYOP_PLAIN_CPU_KERNELS(OpenvinoRoiFeatures, OpenvinoRoiFeaturesCpu, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
