// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

// Returns true if the graph states that both tensors have the same shape: the operator does not broadcast.
bool HaveOneShape(const KnownTensor& a, const KnownTensor& b) {
  return a.shape.has_value() && b.shape.has_value() && *a.shape == *b.shape && a.shape->NumElements().has_value();
}

std::unique_ptr<StandardKernel> MakeMod(const StandardNode& node) {
  if (node.Int("fmod", 0) != 1 || !HaveOneShape(node.input(0), node.input(1))) return nullptr;
  constexpr int kRemainder = 3;
  return OperatorCall::Make(node, "special_binary",
                            {{"function", AttrValue::String("elementary")}, {"variant", AttrValue::Int(kRemainder)}},
                            {0, 1}, {0});
}

bool ModPays(const StandardNode& node) { return node.input(0).TypicalElements() >= 1'000; }

POLYOP_STANDARD(mod, {"Mod", MakeMod, ModPays});

}  // namespace
}  // namespace polyop
