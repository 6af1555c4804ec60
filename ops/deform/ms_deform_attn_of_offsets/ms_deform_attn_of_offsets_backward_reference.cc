// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/deform/deform_attn_reference.h"
#include "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets_backward.h"

namespace polyop {
namespace {

Status MsDeformAttnOfOffsetsBackwardReference(const MsDeformAttnOfOffsetsBackward&, const Context&,
                                              Tensor<const double, 4> grad_output, Tensor<const double, 4> value,
                                              Tensor<const int64_t, 2> shapes, Tensor<const double, 4> references,
                                              Tensor<const double, 4> offsets, Tensor<const double, 4> logits,
                                              std::optional<Tensor<double, 4>> grad_value,
                                              std::optional<Tensor<double, 4>> grad_references,
                                              std::optional<Tensor<double, 4>> grad_offsets,
                                              std::optional<Tensor<double, 4>> grad_logits) {
  const int64_t queries = references.dim(1), heads = value.dim(2), depth = value.dim(3), groups = references.dim(3) / 2;
  const int64_t num_levels = shapes.dim(0), samples = logits.dim(3);
  const int64_t points = num_levels == 0 ? 0 : samples / num_levels;
  std::vector<AttnLevel> levels(static_cast<size_t>(num_levels));
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, value.dim(1), levels.data()));
  if (grad_value) std::fill_n(grad_value->data(), grad_value->size(), 0.0);
  if (grad_references) std::fill_n(grad_references->data(), grad_references->size(), 0.0);
  std::vector<double> weights;
  for (int64_t pair = 0; pair < value.dim(0) * queries * heads; ++pair) {
    reference::AttnSoftmax(logits.data() + pair * samples, samples, weights);
    for (int64_t s = 0; s < samples; ++s) {
      const AttnLevel& level = levels[static_cast<size_t>(s / points)];
      const int64_t group = pair / heads * groups + s % points % groups, at = pair * samples + s;
      const double width = static_cast<double>(level.width), height = static_cast<double>(level.height);
      const double x = references[2 * group] * width + offsets[2 * at] - 0.5;
      const double y = references[2 * group + 1] * height + offsets[2 * at + 1] - 0.5;
      const reference::AttnSampleGrad grad = reference::AddAttnSampleBackward(
          value, pair / heads / queries, pair % heads, level, y, x, weights[static_cast<size_t>(s)],
          grad_output.data() + pair * depth, grad_value ? grad_value->data() : nullptr);
      if (grad_offsets) {
        (*grad_offsets)[2 * at] = grad.x;
        (*grad_offsets)[2 * at + 1] = grad.y;
      }
      if (grad_references) {
        (*grad_references)[2 * group] += grad.x * width;
        (*grad_references)[2 * group + 1] += grad.y * height;
      }
      if (grad_logits) (*grad_logits)[at] = grad.weight;
    }
    if (grad_logits) reference::AttnSoftmaxBackward(weights, grad_logits->data() + pair * samples);
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(MsDeformAttnOfOffsetsBackward, MsDeformAttnOfOffsetsBackwardReference);

}  // namespace
}  // namespace polyop
