#include "families/rois/scatter_bins_cuda.h"
#include "ops/rotated_feature_align/rotated_feature_align_backward.h"
#include "ops/rotated_feature_align/rotated_feature_align_taps.h"

namespace polyop {
namespace {

// Each image is a RoI whose bins are its pixels.
template <class T>
struct ImageBinGrads {
  ImageTaps<T> first_image;
  const T* grads;
  int64_t channels, pixels;

  POLYOP_HD int64_t Image(int64_t n) const { return n; }
  POLYOP_HD float Grad(int64_t n, int64_t channel, int64_t pixel) const {
    return ToFloat(grads[(n * channels + channel) * pixels + pixel]);
  }
  POLYOP_HD ImageTaps<T> Roi(int64_t n) const {
    ImageTaps<T> taps = first_image;
    taps.boxes += n * pixels * 5;
    return taps;
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
