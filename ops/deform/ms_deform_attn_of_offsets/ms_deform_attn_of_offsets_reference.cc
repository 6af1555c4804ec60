// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/deform/deform_attn_reference.h"
#include "ops/deform/ms_deform_attn_of_offsets/ms_deform_attn_of_offsets.h"

namespace polyop {
namespace {

Status MsDeformAttnOfOffsetsReference(const MsDeformAttnOfOffsets&, const Context&, Tensor<const double, 4> value,
                                      Tensor<const int64_t, 2> shapes, Tensor<const double, 4> references,
                                      Tensor<const double, 4> offsets, Tensor<const double, 4> logits,
                                      Tensor<double, 4> output) {
  const int64_t queries = references.dim(1), heads = value.dim(2), depth = value.dim(3), groups = references.dim(3) / 2;
  const int64_t num_levels = shapes.dim(0), points = num_levels == 0 ? 0 : logits.dim(3) / num_levels;
  std::vector<AttnLevel> levels(static_cast<size_t>(num_levels));
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, value.dim(1), levels.data()));
  for (int64_t i = 0; i < output.size(); ++i) output[i] = 0;
  for (int64_t n = 0; n < value.dim(0); ++n) {
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t m = 0; m < heads; ++m) {
        const int64_t pair = (n * queries + q) * heads + m;
        const double* const logit = logits.data() + pair * logits.dim(3);
        double max_logit = -INFINITY, sum = 0;
        for (int64_t s = 0; s < logits.dim(3); ++s) max_logit = std::fmax(max_logit, logit[s]);
        for (int64_t s = 0; s < logits.dim(3); ++s) sum += std::exp(logit[s] - max_logit);
        for (int64_t l = 0; l < num_levels; ++l) {
          const AttnLevel& level = levels[static_cast<size_t>(l)];
          for (int64_t p = 0; p < points; ++p) {
            const double* const point = references.data() + ((n * queries + q) * groups + p % groups) * 2;
            const double* const offset = offsets.data() + ((pair * num_levels + l) * points + p) * 2;
            const double x = point[0] * static_cast<double>(level.width) + offset[0] - 0.5;
            const double y = point[1] * static_cast<double>(level.height) + offset[1] - 0.5;
            const double weight = std::exp(logit[l * points + p] - max_logit) / sum;
            reference::AddAttnSample(value, n, m, level, y, x, weight, output.data() + pair * depth);
          }
        }
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(MsDeformAttnOfOffsets, MsDeformAttnOfOffsetsReference);

}  // namespace
}  // namespace polyop
