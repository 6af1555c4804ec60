// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/openvino_roi_features/openvino_roi_features.h"
#include "ops/rois/roi_pool_cuda.h"

namespace polyop {
namespace {

template <class T>
Status OpenvinoRoiFeaturesCuda(const OpenvinoRoiFeatures& op, const CudaContext& cuda, Tensor<const T, 2> rois,
                               TensorList<const T, 4> feats, Tensor<T, 4> features) {
  const RoiPyramidRule rule = op.Rule();
  RoiPyramid<T> pyramid{{}, 1, feats[0].dim(1)};
  PyramidLevels(rule.featmap_strides, feats, pyramid.level);
  const UprightRois<T> boxes{.rows = rois.data(),
                             .finest_scale = static_cast<double>(rule.finest_scale),
                             .levels = feats.size(),
                             .of_one_image = true};
  const RoiPooling how{rule.output_height, rule.output_width, rule.sampling_ratio, rule.aligned, true};
  return PoolRoisCuda<T>(cuda, pyramid, boxes, rois.dim(0), how, features.data());
}

POLYOP_CUDA_KERNELS(OpenvinoRoiFeatures, OpenvinoRoiFeaturesCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
