// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

// Returns the axis, which is a constant input of one element.
std::optional<int64_t> AxisOf(const StandardNode& node) {
  const auto axis = node.input(1).Values<int64_t>();
  if (axis.has_value() && axis->size() == 1) return axis->front();
  const auto small = node.input(1).Values<int32_t>();
  if (small.has_value() && small->size() == 1) return small->front();
  return std::nullopt;
}

std::unique_ptr<StandardKernel> MakeCumSum(const StandardNode& node) {
  const std::optional<int64_t> axis = AxisOf(node);
  if (!axis.has_value() || node.input(0).rank() < 1) return nullptr;
  return OperatorCall::Make(node, "cumulative",
                            {{"axis", AttrValue::Int(*axis)},
                             {"exclusive", AttrValue::Int(node.Int("exclusive", 0))},
                             {"reverse", AttrValue::Int(node.Int("reverse", 0))}},
                            {0}, {0});
}

// ONNX Runtime computes the last dimension an element at a time on one thread. Along others it adds slices.
bool CumSumPays(const StandardNode& node) {
  const int64_t axis = *AxisOf(node);
  return (axis == -1 || axis == node.input(0).rank() - 1) && node.input(0).TypicalElements() >= 4'000;
}

POLYOP_STANDARD(cum_sum, {"CumSum", MakeCumSum, CumSumPays});

}  // namespace
}  // namespace polyop
