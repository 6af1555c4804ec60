// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/sampling/rotate/rotate_backward.h"

namespace polyop {
namespace {

// Positions are computed as in the reference of the operator.
Status RotateBackwardReference(const RotateBackward& op, const Context&, Tensor<const double, 3> grad_output,
                               Tensor<const double, 3> img, Tensor<const double, 0> angle,
                               Tensor<const double, 1> center, std::optional<Tensor<double, 3>> grad_img,
                               std::optional<Tensor<double, 0>> grad_angle,
                               std::optional<Tensor<double, 1>> grad_center) {
  const int64_t height = img.dim(1), width = img.dim(2);
  const double pi = std::acos(-1.0), a = -angle[0] * pi / 180, sine = std::sin(a), cosine = std::cos(a);
  if (grad_img) std::fill_n(grad_img->data(), grad_img->size(), 0.0);
  double of_angle = 0, of_x = 0, of_y = 0;
  for (int64_t i = 0; i < grad_output.size(); ++i) {
    const int64_t plane = i / (height * width) * height * width;
    const double u = static_cast<double>(i % width) + 0.5 - center[0];
    const double v = static_cast<double>(i / width % height) + 0.5 - center[1];
    const double x = u * cosine + v * sine + center[0] - 0.5, y = v * cosine - u * sine + center[1] - 0.5;
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const bool nearest = op.interpolation == Rotate::Interpolation::kNearest;
    const double left = nearest ? std::nearbyint(x) : std::floor(x), top = nearest ? std::nearbyint(y) : std::floor(y);
    for (int k = 0; k < (nearest ? 1 : 4); ++k) {
      const double row = top + k / 2, column = left + k % 2;
      if (row < 0 || column < 0 || row >= static_cast<double>(height) || column >= static_cast<double>(width)) continue;
      const int64_t pixel = plane + static_cast<int64_t>(row) * width + static_cast<int64_t>(column);
      const double in_row = nearest ? 1 : 1 - std::fabs(y - row), in_column = nearest ? 1 : 1 - std::fabs(x - column);
      if (grad_img && in_row * in_column != 0) (*grad_img)[pixel] += in_row * in_column * grad_output[i];
      if (nearest) continue;
      const double grad = grad_output[i] * img[pixel];
      const double slope_x = grad * in_row * (k % 2 == 0 ? -1 : 1), slope_y = grad * in_column * (k / 2 == 0 ? -1 : 1);
      of_angle += (slope_x * (v * cosine - u * sine) + slope_y * (-v * sine - u * cosine)) * (-pi / 180);
      of_x += slope_x * (1 - cosine) + slope_y * sine;
      of_y += slope_y * (1 - cosine) - slope_x * sine;
    }
  }
  if (grad_angle) (*grad_angle)[0] = of_angle;
  if (grad_center) {
    (*grad_center)[0] = of_x;
    (*grad_center)[1] = of_y;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(RotateBackward, RotateBackwardReference);

}  // namespace
}  // namespace polyop
