#include <cmath>
#include <vector>

#include "ops/ms_deform_attn/ms_deform_attn.h"
#include "ops/ms_deform_attn/ms_deform_attn_values.h"

namespace polyop {
namespace {

Status MsDeformAttnReference(const MsDeformAttn&, const Context&, Tensor<const double, 4> value,
                             Tensor<const int64_t, 2> shapes, Tensor<const int64_t, 1> starts,
                             Tensor<const double, 6> locations, Tensor<const double, 5> weights,
                             Tensor<double, 3> output) {
  const int64_t batch = value.dim(0), spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3);
  const int64_t queries = locations.dim(1), levels = locations.dim(3), points = locations.dim(4);
  std::vector<AttnLevel> inside(static_cast<size_t>(levels));
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, starts, spatial, inside.data()));
  for (int64_t i = 0; i < output.size(); ++i) output[i] = 0;
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t m = 0; m < heads; ++m) {
        for (int64_t l = 0; l < levels; ++l) {
          const AttnLevel level = inside[static_cast<size_t>(l)];
          const auto pixel = [&](int64_t y, int64_t x, int64_t d) {
            if (y < 0 || y >= level.height || x < 0 || x >= level.width) return 0.0;
            return value[((n * spatial + level.start + y * level.width + x) * heads + m) * depth + d];
          };
          for (int64_t p = 0; p < points; ++p) {
            const int64_t at = (((n * queries + q) * heads + m) * levels + l) * points + p;
            const double x = locations[2 * at] * static_cast<double>(level.width) - 0.5;
            const double y = locations[2 * at + 1] * static_cast<double>(level.height) - 0.5;
            if (!(x > -1 && x < static_cast<double>(level.width) && y > -1 && y < static_cast<double>(level.height)))
              continue;
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
