// SPDX-License-Identifier: Apache-2.0
#include "ops/sampling/grid_samples.h"
#include "ops/sampling/rotate/source_points.h"

namespace polyop {
namespace {

template <class T, class U>
Status RotateBy(const Rotate& op, const Context& context, const Tensor<const T, 3>& img,
                const Tensor<const U, 0>& angle, const Tensor<const U, 1>& center, const Tensor<T, 3>& output) {
  const int64_t channels = img.dim(0), height = img.dim(1), width = img.dim(2);
  const Scratch<float> points = context.Allocate<float>(2 * height * width);
  if (!points) return Internal("out of memory: ", height * width, " points");
  const Rotation rotation = RotationOf(op, angle, center);
  FindSources(context, rotation, height, width, points.data());
  const auto axes = SourceAxes(op, height, width);
  const Shape shape = {1, channels, height, width};
  return Sample2d<T>(context, op.Rule().interpolation_mode, axes.data(), Tensor<const T, 4>(img.data(), shape),
                     points.data(), Tensor<T, 4>(output.data(), shape));
}

template <class T>
Status RotateCpu(const Rotate& op, const Context& context, Tensor<const T, 3> img, Tensor<const T, 0> angle,
                 Tensor<const T, 1> center, Tensor<T, 3> output) {
  return RotateBy(op, context, img, angle, center, output);
}
template <class T>
Status RotateByF32(const Rotate& op, const Context& context, Tensor<const T, 3> img, Tensor<const float, 0> angle,
                   Tensor<const float, 1> center, Tensor<T, 3> output) {
  return RotateBy(op, context, img, angle, center, output);
}

POLYOP_PLAIN_CPU_KERNELS(Rotate, RotateCpu, float, Half, BFloat16);
POLYOP_PLAIN_CPU_KERNELS(Rotate, RotateByF32, Half, BFloat16);

}  // namespace
}  // namespace polyop
