// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/sampling/grid_backward.h"
#include "ops/sampling/rotate/rotate_backward.h"
#include "ops/sampling/rotate/source_points.h"

namespace polyop {
namespace {

// The gradients of the angle and of the center's x and y.
struct PoseGrads {
  double sums[3] = {0, 0, 0};

  // Sums over rows, task by task, so that the result does not depend on the number of threads.
  void Add(const Context& context, const Rotation& rotation, int64_t height, int64_t width, const float* grad_points) {
    PoseGrads of_tasks[Context::kMaxTasks];
    const int64_t grain = GrainFor(static_cast<double>(width) * 4);
    context.ParallelFor(height, grain, [&](int64_t task, int64_t begin, int64_t end) {
      for (int64_t i = begin * width; i < end * width; ++i) {
        rotation.AddSlopes(i / width, i % width, grad_points + 2 * i, of_tasks[task].sums);
      }
    });
    for (const PoseGrads& of_task : of_tasks) {
      for (int k = 0; k < 3; ++k) sums[k] += of_task.sums[k];
    }
  }
};

template <class T, class U>
Status RotateByBackward(const RotateBackward& op, const Context& context, const Tensor<const T, 3>& grad_output,
                        const Tensor<const T, 3>& img, const Tensor<const U, 0>& angle,
                        const Tensor<const U, 1>& center, const std::optional<Tensor<T, 3>>& grad_img,
                        const std::optional<Tensor<U, 0>>& grad_angle, const std::optional<Tensor<U, 1>>& grad_center) {
  const int64_t channels = img.dim(0), height = img.dim(1), width = img.dim(2);
  const Rotation rotation = RotationOf(op, angle, center);
  const bool of_pose = (grad_angle || grad_center) && !rotation.nearest && rotation.IsFinite() && img.size() > 0;
  PoseGrads pose;
  if ((grad_img || of_pose) && img.size() > 0) {
    const Scratch<float> points = context.Allocate<float>(2 * height * width);
    const Scratch<float> grad_points = context.Allocate<float>(of_pose ? 2 * height * width : 0);
    if (!points || !grad_points) return Internal("out of memory: ", height * width, " points");
    FindSources(context, rotation, height, width, points.data());
    const auto axes = SourceAxes(op, height, width);
    const Shape shape = {1, channels, height, width};
    POLYOP_RETURN_IF_ERROR(Sample2dBackward<T>(
        context, op.Rule().interpolation_mode, axes.data(), Tensor<const T, 4>(grad_output.data(), shape),
        Tensor<const T, 4>(img.data(), shape), points.data(), grad_img ? grad_img->data() : nullptr,
        of_pose ? grad_points.data() : nullptr));
    if (of_pose) pose.Add(context, rotation, height, width, grad_points.data());
  }
  if (grad_angle) (*grad_angle)[0] = FromFloat<U>(static_cast<float>(pose.sums[0]));
  for (int k = 0; grad_center && k < 2; ++k) {
    (*grad_center)[k] = FromFloat<U>(static_cast<float>(pose.sums[1 + k]));
  }
  return Status::Ok();
}

template <class T>
Status RotateBackwardCpu(const RotateBackward& op, const Context& context, Tensor<const T, 3> grad_output,
                         Tensor<const T, 3> img, Tensor<const T, 0> angle, Tensor<const T, 1> center,
                         std::optional<Tensor<T, 3>> grad_img, std::optional<Tensor<T, 0>> grad_angle,
                         std::optional<Tensor<T, 1>> grad_center) {
  return RotateByBackward(op, context, grad_output, img, angle, center, grad_img, grad_angle, grad_center);
}
template <class T>
Status RotateBackwardByF32(const RotateBackward& op, const Context& context, Tensor<const T, 3> grad_output,
                           Tensor<const T, 3> img, Tensor<const float, 0> angle, Tensor<const float, 1> center,
                           std::optional<Tensor<T, 3>> grad_img, std::optional<Tensor<float, 0>> grad_angle,
                           std::optional<Tensor<float, 1>> grad_center) {
  return RotateByBackward(op, context, grad_output, img, angle, center, grad_img, grad_angle, grad_center);
}

POLYOP_PLAIN_CPU_KERNELS(RotateBackward, RotateBackwardCpu, float, Half, BFloat16);
POLYOP_PLAIN_CPU_KERNELS(RotateBackward, RotateBackwardByF32, Half, BFloat16);

}  // namespace
}  // namespace polyop
