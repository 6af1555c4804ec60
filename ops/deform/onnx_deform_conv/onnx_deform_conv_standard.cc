// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

std::unique_ptr<StandardKernel> MakeDeformConv(const StandardNode& node) {
  return OperatorCall::Mirror(node, "polyop::DeformConv");
}

// ONNX Runtime before 1.25 has no kernel. Measured with one thread in 1.31: 1.2 to 1.4 times as fast for 16 channels
// and more of 32 x 32 and larger, 0.7 to 1.0 times for fewer channels, smaller images and kernels of one element.
bool DeformConvPays(const StandardNode& node) {
  constexpr int64_t kMinChannels = 16;
  constexpr double kMinPixels = 900;
  const KnownTensor &weights = node.input(1), &output = node.output(0);
  if (node.release < 25 || weights.dtype != DType::kF32) return true;
  if (weights.rank() != 4 || output.rank() != 4) return false;
  const Shape &filters = *weights.shape, &result = *output.shape;
  const auto pixels = [&](int d) { return result[d] == kUnknownExtent ? 32.0 : static_cast<double>(result[d]); };
  return filters[1] >= kMinChannels && filters[2] * filters[3] >= 4 && pixels(2) * pixels(3) >= kMinPixels;
}

POLYOP_STANDARD(deform_conv, {"DeformConv", MakeDeformConv, DeformConvPays});

}  // namespace
}  // namespace polyop
