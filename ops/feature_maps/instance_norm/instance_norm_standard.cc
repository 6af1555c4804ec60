// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

std::unique_ptr<StandardKernel> MakeInstanceNormalization(const StandardNode& node) {
  return OperatorCall::Mirror(node, "polyop::InstanceNormalization");
}

// For fewer elements ONNX Runtime's single pass is as fast.
bool InstanceNormalizationPays(const StandardNode& node) { return node.input(0).TypicalElements() >= 100'000; }

POLYOP_STANDARD(instance_normalization,
                {"InstanceNormalization", MakeInstanceNormalization, InstanceNormalizationPays});

}  // namespace
}  // namespace polyop
