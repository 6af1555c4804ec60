#include <algorithm>
#include <vector>

#include "families/deform_attn/deform_attn_reference.h"
#include "ops/ms_deform_attn/ms_deform_attn_backward.h"

namespace polyop {
namespace {

Status MsDeformAttnBackwardReference(const MsDeformAttnBackward&, const Context&, Tensor<const double, 3> grad_output,
                                     Tensor<const double, 4> value, Tensor<const int64_t, 2> shapes,
                                     Tensor<const int64_t, 1> starts, Tensor<const double, 6> locations,
                                     Tensor<const double, 5> weights, std::optional<Tensor<double, 4>> grad_value,
                                     std::optional<Tensor<double, 6>> grad_locations,
                                     std::optional<Tensor<double, 5>> grad_weights) {
  const int64_t heads = value.dim(2), depth = value.dim(3), queries = locations.dim(1);
  const int64_t points = locations.dim(4), samples = locations.dim(3) * points;
  std::vector<AttnLevel> levels(static_cast<size_t>(starts.dim(0)));
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, starts, value.dim(1), levels.data()));
  if (grad_value) std::fill_n(grad_value->data(), grad_value->size(), 0.0);
  for (int64_t pair = 0; pair < value.dim(0) * queries * heads; ++pair) {
    for (int64_t s = 0; s < samples; ++s) {
      const AttnLevel& level = levels[static_cast<size_t>(s / points)];
      const int64_t at = pair * samples + s;
      const double width = static_cast<double>(level.width), height = static_cast<double>(level.height);
      const double x = locations[2 * at] * width - 0.5, y = locations[2 * at + 1] * height - 0.5;
      const reference::AttnSampleGrad grad = reference::AddAttnSampleBackward(
          value, pair / heads / queries, pair % heads, level, y, x, weights[at], grad_output.data() + pair * depth,
          grad_value ? grad_value->data() : nullptr);
      if (grad_weights) (*grad_weights)[at] = grad.weight;
      if (!grad_locations) continue;
      (*grad_locations)[2 * at] = grad.x * width;
      (*grad_locations)[2 * at + 1] = grad.y * height;
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(MsDeformAttnBackward, MsDeformAttnBackwardReference);

}  // namespace
}  // namespace polyop
