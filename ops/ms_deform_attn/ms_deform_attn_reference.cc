#include <cmath>

#include "ops/ms_deform_attn/ms_deform_attn.h"

namespace polyop {
namespace {

Status MsDeformAttnReference(const MsDeformAttn&, const Context&, Tensor<const double, 4> value,
                             Tensor<const int64_t, 2> shapes, Tensor<const int64_t, 1> starts,
                             Tensor<const double, 6> locations, Tensor<const double, 5> weights,
                             Tensor<double, 3> output) {
  const int64_t batch = value.dim(0), spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3);
  const int64_t queries = locations.dim(1), levels = locations.dim(3), points = locations.dim(4);
  for (int64_t i = 0; i < output.size(); ++i) output[i] = 0;
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t m = 0; m < heads; ++m) {
        for (int64_t l = 0; l < levels; ++l) {
          const int64_t height = shapes[2 * l], width = shapes[2 * l + 1];
          const auto pixel = [&](int64_t y, int64_t x, int64_t d) {
            if (y < 0 || y >= height || x < 0 || x >= width) return 0.0;
            return value[((n * spatial + starts[l] + y * width + x) * heads + m) * depth + d];
          };
          for (int64_t p = 0; p < points; ++p) {
            const int64_t at = (((n * queries + q) * heads + m) * levels + l) * points + p;
            const double x = locations[2 * at] * static_cast<double>(width) - 0.5;
            const double y = locations[2 * at + 1] * static_cast<double>(height) - 0.5;
            if (!(x > -1 && x < static_cast<double>(width) && y > -1 && y < static_cast<double>(height))) continue;
            const auto left = static_cast<int64_t>(std::floor(x)), top = static_cast<int64_t>(std::floor(y));
            const double dx = x - std::floor(x), dy = y - std::floor(y);
            for (int64_t d = 0; d < depth; ++d) {
              const double upper = (1 - dx) * pixel(top, left, d) + dx * pixel(top, left + 1, d);
              const double lower = (1 - dx) * pixel(top + 1, left, d) + dx * pixel(top + 1, left + 1, d);
              output[((n * queries + q) * heads + m) * depth + d] += weights[at] * ((1 - dy) * upper + dy * lower);
            }
          }
        }
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(MsDeformAttn, MsDeformAttnF64, MsDeformAttnReference);

}  // namespace
}  // namespace polyop
