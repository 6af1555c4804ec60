// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ops/deform/deform_attn_reference.h"
#include "ops/deform/flash_deform_attn/flash_deform_attn.h"

namespace polyop {
namespace {

Status FlashDeformAttnReference(const FlashDeformAttn& op, const Context&, Tensor<const double, 4> value,
                                Tensor<const int64_t, 2> shapes, Tensor<const int64_t, 1> starts,
                                Tensor<const double, 4> loc_attn, Tensor<double, 3> output) {
  const int64_t queries = loc_attn.dim(1), heads = value.dim(2), depth = value.dim(3);
  const int64_t samples = starts.dim(0) * op.points;
  std::vector<AttnLevel> levels(static_cast<size_t>(starts.dim(0)));
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, starts, value.dim(1), levels.data()));
  for (int64_t i = 0; i < output.size(); ++i) output[i] = 0;
  for (int64_t pair = 0; pair < value.dim(0) * queries * heads; ++pair) {
    const double* const row = loc_attn.data() + pair * 3 * samples;
    const double* const logit = row + 2 * samples;
    double max_logit = -INFINITY, sum = 0;
    for (int64_t s = 0; s < samples; ++s) max_logit = std::fmax(max_logit, logit[s]);
    for (int64_t s = 0; s < samples; ++s) sum += std::exp(logit[s] - max_logit);
    for (int64_t s = 0; s < samples; ++s) {
      const AttnLevel& level = levels[static_cast<size_t>(s / op.points)];
      const double x = row[2 * s] * static_cast<double>(level.width) - 0.5;
      const double y = row[2 * s + 1] * static_cast<double>(level.height) - 0.5;
      reference::AddAttnSample(value, pair / heads / queries, pair % heads, level, y, x,
                               std::exp(logit[s] - max_logit) / sum, output.data() + pair * depth);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNEL(FlashDeformAttn, FlashDeformAttnReference);

}  // namespace
}  // namespace polyop
