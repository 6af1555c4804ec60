// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

std::unique_ptr<StandardKernel> MakeScatterElements(const StandardNode& node) {
  const std::string reduction = node.Text("reduction", "none");
  if (reduction == "none") return nullptr;
  return OperatorCall::Make(
      node, "scatter_reduce",
      {{"axis", AttrValue::Int(node.Int("axis", 0))}, {"reduction", AttrValue::String(reduction)}}, {0, 1, 2}, {0});
}

bool ScatterElementsPays(const StandardNode& node) { return node.input(2).TypicalElements() >= 1'000; }

POLYOP_STANDARD(scatter_elements, {"ScatterElements", MakeScatterElements, ScatterElementsPays});

}  // namespace
}  // namespace polyop
