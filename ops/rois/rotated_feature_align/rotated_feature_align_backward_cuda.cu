// SPDX-License-Identifier: Apache-2.0
#include "ops/rois/rotated_feature_align/rotated_feature_align_backward.h"
#include "ops/rois/rotated_feature_align/rotated_feature_align_points.h"
#include "ops/rois/scatter_bins_cuda.h"

namespace polyop {
namespace {

// The pixels of an image: a pixel is the sum of itself and of its box's samples.
template <class T>
struct AlignedPixels {
  RotatedFeatureAlign op;
  const T* boxes;
  int64_t height, width;

  template <class Add>
  POLYOP_HD void ForEachTap(int64_t pixel, const Add& add) const {
    add(Tap{static_cast<int32_t>(pixel), 1.0f});
    ForEachPoint(op, boxes + pixel * 5,
                 [&](double y, double x) { RoiSample{RoiTaps(y, height), RoiTaps(x, width)}.ForEachTap(width, add); });
  }
};

// Each image is a RoI whose bins are its pixels.
template <class T>
struct ImageBinGrads {
  AlignedPixels<T> first_image;
  const T* grads;
  int64_t channels, pixels;

  POLYOP_HD int64_t Image(int64_t n) const { return n; }
  POLYOP_HD float Grad(int64_t n, int64_t channel, int64_t pixel) const {
    return ToFloat(grads[(n * channels + channel) * pixels + pixel]);
  }
  POLYOP_HD AlignedPixels<T> Roi(int64_t n) const {
    AlignedPixels<T> image = first_image;
    image.boxes += n * pixels * 5;
    return image;
  }
};

template <class T>
Status RotatedFeatureAlignBackwardCuda(const RotatedFeatureAlignBackward& op, const CudaContext& cuda,
                                       Tensor<const T, 4> grad_output, Tensor<const T, 4> features,
                                       Tensor<const T, 4> boxes, Tensor<T, 4> grad_features) {
  const int64_t height = features.dim(2), width = features.dim(3), pixels = height * width;
  const ImageBinGrads<T> grads{{op, boxes.data(), height, width}, grad_output.data(), features.dim(1), pixels};
  return ScatterBinsCuda<T>(cuda, features.dim(0), pixels, grads, grad_features);
}

POLYOP_ATOMIC_CUDA_KERNELS(RotatedFeatureAlignBackward, RotatedFeatureAlignBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
