// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

// Unique of a vector of integers. Its second output, the first index of each value, is not computed.
std::unique_ptr<StandardKernel> MakeUnique(const StandardNode& node) {
  if (node.input(0).rank() != 1 || node.Has("axis") || node.Int("sorted", 1) != 1 || node.output(1).present) {
    return nullptr;
  }
  return OperatorCall::Make(node, "custom_unique", {}, {0}, {0, 2, 3, -1});
}

bool UniquePays(const StandardNode& node) { return node.input(0).TypicalElements() >= 1'000; }

POLYOP_STANDARD(unique, {"Unique", MakeUnique, UniquePays});

}  // namespace
}  // namespace polyop
