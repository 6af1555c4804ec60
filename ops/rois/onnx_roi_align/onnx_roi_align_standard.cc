// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

namespace polyop {
namespace {

std::unique_ptr<StandardKernel> MakeRoiAlign(const StandardNode& node) {
  return OperatorCall::Mirror(node, "polyop::RoiAlign");
}

// The image is copied: for few boxes of a large image the copy costs more than the kernel gains. ONNX Runtime before
// 1.32 has no kernel of version 22.
bool RoiAlignPays(const StandardNode& node) {
  constexpr double kMinShare = 0.06;  // elements of the result per element of the image
  const KnownTensor &image = node.input(0), &boxes = node.input(1);
  if ((node.since >= 22 && node.release < 32) || image.dtype != DType::kF32 || image.rank() != 4 || boxes.rank() != 2)
    return true;
  const Shape& shape = *image.shape;
  if (shape[1] == kUnknownExtent || shape[2] == kUnknownExtent || shape[3] == kUnknownExtent) return true;
  const int64_t count = (*boxes.shape)[0], batch = shape[0] == kUnknownExtent ? 1 : shape[0];
  if (count == kUnknownExtent) return true;
  const double bins =
      static_cast<double>(node.Int("output_height", 1)) * static_cast<double>(node.Int("output_width", 1));
  return static_cast<double>(count) * bins >=
         kMinShare * static_cast<double>(batch) * static_cast<double>(shape[2]) * static_cast<double>(shape[3]);
}

POLYOP_STANDARD(roi_align, {"RoiAlign", MakeRoiAlign, RoiAlignPays});

}  // namespace
}  // namespace polyop
