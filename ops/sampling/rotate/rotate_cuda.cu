// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_samples_cuda.h"
#include "ops/sampling/rotate/rotate.h"
#include "ops/sampling/rotate/rotated_points_cuda.h"

namespace polyop {
namespace {

template <class T, class U>
Status RotateCuda(const Rotate& op, const CudaContext& cuda, Tensor<const T, 3> img, Tensor<const U, 0> angle,
                  Tensor<const U, 1> center, Tensor<T, 3> output) {
  const Rotation* rotation;
  POLYOP_RETURN_IF_ERROR(FindRotation(op, cuda, angle.data(), center.data(), &rotation));
  const Shape shape = {1, img.dim(0), img.dim(1), img.dim(2)};
  return SampleCuda<2>(cuda, op.Rule(), Tensor<const T, 4>(img.data(), shape), RotatedPoints{rotation, img.dim(2)},
                       Tensor<T, 4>(output.data(), shape));
}

POLYOP_CUDA_KERNELS(Rotate, RotateCuda, (float, float), (Half, Half), (BFloat16, BFloat16), (Half, float),
                    (BFloat16, float));

}  // namespace
}  // namespace polyop
