// SPDX-License-Identifier: Apache-2.0
#include "ops/points/scatter_columns_cuda.h"
#include "ops/points/three_interpolate/three_interpolate_backward.h"

namespace polyop {
namespace {

// Each thread computes the scalar product, over the channels, of a point's gradient and one of its columns of features.
// It is NaN for an index out of range.
template <class T, class I>
Status InterpolationWeightsCuda(const CudaContext& cuda, const Tensor<const T, 3>& grad,
                                const Tensor<const T, 3>& features, const I* idx, T* grad_weight) {
  const int64_t channels = grad.dim(1), points = grad.dim(2), columns = features.dim(2);
  const T *const grads = grad.data(), *const from = features.data();
  const Divider by_points(points);
  return ForEach(cuda, grad.dim(0) * 3 * points, [=] POLYOP_DEVICE(int64_t i) {
    int64_t point;
    const int64_t rest = by_points.Split(i, &point), b = rest / 3, at = (b * points + point) * 3 + rest % 3;
    const int64_t column = idx[at];
    float sum = column >= 0 && column < columns ? 0 : NAN;
    for (int64_t c = b * channels; sum == sum && c < (b + 1) * channels; ++c) {
      sum += ToFloat(grads[c * points + point]) * ToFloat(from[c * columns + column]);
    }
    grad_weight[at] = FromFloat<T>(sum);
  });
}

template <class T, class I>
Status ThreeInterpolateBackwardCuda(const ThreeInterpolateBackward&, const CudaContext& cuda,
                                    Tensor<const T, 3> grad_interpolated, Tensor<const T, 3> features,
                                    Tensor<const I, 3> idx, Tensor<const T, 3> weight,
                                    std::optional<Tensor<T, 3>> grad_features,
                                    std::optional<Tensor<T, 3>> grad_weight) {
  if (grad_features) {
    POLYOP_RETURN_IF_ERROR(ScatterColumnsCuda<T>(cuda, grad_interpolated.data(), idx.data(), weight.data(),
                                                 features.dim(0), features.dim(1), idx.dim(1), 3, features.dim(2),
                                                 grad_features->data()));
  }
  if (!grad_weight) return Status::Ok();
  return InterpolationWeightsCuda<T>(cuda, grad_interpolated, features, idx.data(), grad_weight->data());
}

POLYOP_CUDA_KERNELS(ThreeInterpolateBackward, ThreeInterpolateBackwardCuda, (float, int32_t), (float, int64_t),
                    (Half, int32_t), (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
