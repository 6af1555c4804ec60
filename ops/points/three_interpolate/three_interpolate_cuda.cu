// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/points/three_interpolate/three_interpolate.h"

namespace polyop {
namespace {

// An invalid index reads nothing; the sum is NaN.
template <class T, class I>
Status ThreeInterpolateCuda(const ThreeInterpolate&, const CudaContext& cuda, Tensor<const T, 3> features,
                            Tensor<const I, 3> idx, Tensor<const T, 3> weight, Tensor<T, 3> interpolated) {
  const int64_t columns = features.dim(2);
  const Divider points(idx.dim(1)), channels(features.dim(1));
  return ForEach(cuda, interpolated.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t point;
    const int64_t row = points.Split(i, &point), first = 3 * (channels.Quotient(row) * points.divisor() + point);
    float sum = 0;
    for (int64_t k = first; k < first + 3; ++k) {
      const int64_t column = idx[k];
      const bool inside = column >= 0 && column < columns;
      sum += inside ? ToFloat(weight[k]) * ToFloat(features[row * columns + column]) : NAN;
    }
    interpolated[i] = FromFloat<T>(sum);
  });
}

POLYOP_CUDA_KERNELS(ThreeInterpolate, ThreeInterpolateCuda, (float, int32_t), (float, int64_t), (Half, int32_t),
                    (Half, int64_t), (BFloat16, int32_t), (BFloat16, int64_t));

}  // namespace
}  // namespace polyop
