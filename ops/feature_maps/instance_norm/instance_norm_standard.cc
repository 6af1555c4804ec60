// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

std::unique_ptr<StandardKernel> MakeInstanceNormalization(const StandardNode& node) {
  return OperatorCall::Mirror(node, "polyop::InstanceNormalization");
}

// ONNX Runtime's single pass is faster for inputs that fit in a cache, and for small channels: [1, 16, 512, 512] takes
// 1.26 times as long there, [1, 64, 128, 128] 0.58 times (1.31, one thread). It has no kernels of f16 and bf16.
bool InstanceNormalizationPays(const StandardNode& node) {
  const KnownTensor &input = node.input(0), &scale = node.input(1);
  if (input.dtype != DType::kF32) return true;
  const int64_t batch = input.rank() > 0 ? (*input.shape)[0] : 1;
  const double elements = input.TypicalElements();
  const double channels = scale.TypicalElements() * static_cast<double>(batch == kUnknownExtent ? 1 : batch);
  return elements >= 2'000'000 && elements >= 32'000 * channels;
}

POLYOP_STANDARD(instance_normalization,
                {"InstanceNormalization", MakeInstanceNormalization, InstanceNormalizationPays});

}  // namespace
}  // namespace polyop
