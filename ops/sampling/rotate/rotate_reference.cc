// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/sampling/rotate/rotate.h"

namespace polyop {
namespace {

// Like torchvision: coordinates are relative to the centre of the image and rotated in the opposite direction.
Status RotateReference(const Rotate& op, const Context&, Tensor<const double, 3> img, Tensor<const double, 0> angle,
                       Tensor<const double, 1> center, Tensor<double, 3> output) {
  const int64_t height = img.dim(1), width = img.dim(2);
  const double pi = std::acos(-1.0), a = -angle[0] * pi / 180;
  const double middle_x = static_cast<double>(width) / 2, middle_y = static_cast<double>(height) / 2;
  const double cx = center[0] - middle_x, cy = center[1] - middle_y;
  const double shift_x = cx - cx * std::cos(a) - cy * std::sin(a), shift_y = cy + cx * std::sin(a) - cy * std::cos(a);
  const auto pixel = [&](int64_t c, double y, double x) {
    const bool inside = y >= 0 && y < static_cast<double>(height) && x >= 0 && x < static_cast<double>(width);
    return inside ? img[(c * height + static_cast<int64_t>(y)) * width + static_cast<int64_t>(x)] : 0.0;
  };
  for (int64_t i = 0; i < output.size(); ++i) {
    const int64_t c = i / (height * width);
    const double u = static_cast<double>(i % width) + 0.5 - middle_x;
    const double v = static_cast<double>(i / width % height) + 0.5 - middle_y;
    const double x = u * std::cos(a) + v * std::sin(a) + shift_x + middle_x - 0.5;
    const double y = -u * std::sin(a) + v * std::cos(a) + shift_y + middle_y - 0.5;
    output[i] = 0;
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    if (op.interpolation == Rotate::Interpolation::kNearest) {
      output[i] = pixel(c, std::nearbyint(y), std::nearbyint(x));
      continue;
    }
    const double left = std::floor(x), top = std::floor(y), dx = x - left, dy = y - top;
    const double upper = (1 - dx) * pixel(c, top, left) + dx * pixel(c, top, left + 1);
    const double lower = (1 - dx) * pixel(c, top + 1, left) + dx * pixel(c, top + 1, left + 1);
    output[i] = (1 - dy) * upper + dy * lower;
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(Rotate, RotateReference);

}  // namespace
}  // namespace polyop
