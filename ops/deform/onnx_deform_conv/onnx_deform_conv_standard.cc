// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

std::unique_ptr<StandardKernel> MakeDeformConv(const StandardNode& node) {
  return OperatorCall::Mirror(node, "polyop::DeformConv");
}

bool DeformConvPays(const StandardNode&) { return true; }

POLYOP_STANDARD(deform_conv, {"DeformConv", MakeDeformConv, DeformConvPays});

}  // namespace
}  // namespace polyop
