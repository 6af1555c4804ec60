// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_reduce.h"
#include "ops/sampling/grid_backward_cuda.h"
#include "ops/sampling/rotate/rotate_backward.h"
#include "ops/sampling/rotate/rotated_points_cuda.h"

namespace polyop {
namespace {

// Gradients of the source positions, [pixels, 2].
struct SourceGrads {
  float* to;

  POLYOP_DEVICE void Write(int64_t, int64_t point, const float grad[2]) const {
    to[2 * point] = grad[0];
    to[2 * point + 1] = grad[1];
  }
};

// The gradients of the angle and of the center's x and y.
struct PoseSums {
  double of[3] = {0, 0, 0};

  POLYOP_HD PoseSums operator+(const PoseSums& other) const {
    return {{of[0] + other.of[0], of[1] + other.of[1], of[2] + other.of[2]}};
  }
};

// Sums the gradients of the source positions. There are none if the angle or the center is not finite, or in mode
// nearest.
template <class U>
Status PoseBackward(const CudaContext& cuda, const Rotation* rotation, const float* grads, int64_t pixels,
                    int64_t width, U* angle, U* center) {
  constexpr int64_t kBlocks = 256;
  const int64_t each = BlocksFor(pixels, kBlocks);
  PoseSums* const parts = cuda.Allocate<PoseSums>(kBlocks);
  POLYOP_RETURN_IF_ERROR(SumByBlocks<PoseSums>(
      cuda, kBlocks, each,
      [=] POLYOP_DEVICE(int64_t part, int64_t j) {
        PoseSums sums;
        const int64_t pixel = part * each + j;
        if (pixel < pixels && rotation->IsFinite()) {
          rotation->AddSlopes(pixel / width, pixel % width, grads + 2 * pixel, sums.of);
        }
        return sums;
      },
      [=] POLYOP_DEVICE(int64_t part, const PoseSums& sums) { parts[part] = sums; }));
  return SumByBlocks<PoseSums>(
      cuda, 1, kBlocks, [=] POLYOP_DEVICE(int64_t, int64_t part) { return parts[part]; },
      [=] POLYOP_DEVICE(int64_t, const PoseSums& sums) {
        if (angle != nullptr) *angle = FromFloat<U>(static_cast<float>(sums.of[0]));
        for (int k = 0; center != nullptr && k < 2; ++k) {
          center[k] = FromFloat<U>(static_cast<float>(sums.of[1 + k]));
        }
      });
}

template <class T, class U>
Status RotateBackwardCuda(const RotateBackward& op, const CudaContext& cuda, Tensor<const T, 3> grad_output,
                          Tensor<const T, 3> img, Tensor<const U, 0> angle, Tensor<const U, 1> center,
                          std::optional<Tensor<T, 3>> grad_img, std::optional<Tensor<U, 0>> grad_angle,
                          std::optional<Tensor<U, 1>> grad_center) {
  const int64_t width = img.dim(2), pixels = img.size() == 0 ? 0 : img.dim(1) * width;  // without channels, any extents
  const bool of_pose = grad_angle || grad_center;
  const Rotation* rotation;
  POLYOP_RETURN_IF_ERROR(FindRotation(op, cuda, angle.data(), center.data(), &rotation));
  float* const grads = of_pose ? cuda.Allocate<float>(2 * pixels) : nullptr;
  const Shape shape = {1, img.dim(0), img.dim(1), img.dim(2)};
  std::optional<Tensor<T, 4>> grad_batch;
  if (grad_img) grad_batch.emplace(grad_img->data(), shape);
  POLYOP_RETURN_IF_ERROR(SampleBackwardCuda<2>(cuda, op.Rule(), Tensor<const T, 4>(grad_output.data(), shape),
                                               Tensor<const T, 4>(img.data(), shape), RotatedPoints{rotation, width},
                                               grad_batch, of_pose && pixels > 0, SourceGrads{grads}));
  if (!of_pose) return cuda.Check();
  return PoseBackward<U>(cuda, rotation, grads, pixels, width, grad_angle ? grad_angle->data() : nullptr,
                         grad_center ? grad_center->data() : nullptr);
}

POLYOP_ATOMIC_CUDA_KERNELS(RotateBackward, RotateBackwardCuda, (float, float), (Half, Half), (BFloat16, BFloat16),
                           (Half, float), (BFloat16, float));

}  // namespace
}  // namespace polyop
