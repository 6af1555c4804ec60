// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/deform/deform_attn_reference.h"
#include "ops/deform/flash_deform_attn/flash_deform_attn_backward.h"

namespace polyop {
namespace {

Status FlashDeformAttnBackwardReference(const FlashDeformAttnBackward& op, const Context&,
                                        Tensor<const double, 3> grad_output, Tensor<const double, 4> value,
                                        Tensor<const int64_t, 2> shapes, Tensor<const int64_t, 1> starts,
                                        Tensor<const double, 4> loc_attn, std::optional<Tensor<double, 4>> grad_value,
                                        std::optional<Tensor<double, 4>> grad_loc_attn) {
  const int64_t queries = loc_attn.dim(1), heads = value.dim(2), depth = value.dim(3);
  const int64_t samples = starts.dim(0) * op.points;
  std::vector<AttnLevel> levels(static_cast<size_t>(starts.dim(0)));
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, starts, value.dim(1), levels.data()));
  if (grad_value) std::fill_n(grad_value->data(), grad_value->size(), 0.0);
  std::vector<double> weights, grads(static_cast<size_t>(3 * samples));
  for (int64_t pair = 0; pair < value.dim(0) * queries * heads; ++pair) {
    const double* const row = loc_attn.data() + pair * 3 * samples;
    reference::AttnSoftmax(row + 2 * samples, samples, weights);
    for (int64_t s = 0; s < samples; ++s) {
      const AttnLevel& level = levels[static_cast<size_t>(s / op.points)];
      const double width = static_cast<double>(level.width), height = static_cast<double>(level.height);
      const double x = row[2 * s] * width - 0.5, y = row[2 * s + 1] * height - 0.5;
      const reference::AttnSampleGrad grad = reference::AddAttnSampleBackward(
          value, pair / heads / queries, pair % heads, level, y, x, weights[static_cast<size_t>(s)],
          grad_output.data() + pair * depth, grad_value ? grad_value->data() : nullptr);
      grads[static_cast<size_t>(2 * s)] = grad.x * width;
      grads[static_cast<size_t>(2 * s + 1)] = grad.y * height;
      grads[static_cast<size_t>(2 * samples + s)] = grad.weight;
    }
    if (!grad_loc_attn) continue;
    reference::AttnSoftmaxBackward(weights, grads.data() + 2 * samples);
    std::copy(grads.begin(), grads.end(), grad_loc_attn->data() + pair * 3 * samples);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(FlashDeformAttnBackward, FlashDeformAttnBackwardReference);

}  // namespace
}  // namespace polyop
