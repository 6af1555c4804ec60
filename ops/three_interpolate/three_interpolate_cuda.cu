#include "kernels/cuda/cuda.h"
#include "ops/three_interpolate/three_interpolate.h"

namespace polyop {
namespace {

// A wrong index reads nothing; the sum is NaN.
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

POLYOP_CUDA_KERNEL(ThreeInterpolate, ThreeInterpolateF32I32, ThreeInterpolateCuda<float, int32_t>);
POLYOP_CUDA_KERNEL(ThreeInterpolate, ThreeInterpolateF32I64, ThreeInterpolateCuda<float, int64_t>);
POLYOP_CUDA_KERNEL(ThreeInterpolate, ThreeInterpolateF16I32, ThreeInterpolateCuda<Half, int32_t>);
POLYOP_CUDA_KERNEL(ThreeInterpolate, ThreeInterpolateF16I64, ThreeInterpolateCuda<Half, int64_t>);
POLYOP_CUDA_KERNEL(ThreeInterpolate, ThreeInterpolateBF16I32, ThreeInterpolateCuda<BFloat16, int32_t>);
POLYOP_CUDA_KERNEL(ThreeInterpolate, ThreeInterpolateBF16I64, ThreeInterpolateCuda<BFloat16, int64_t>);

}  // namespace
}  // namespace polyop
