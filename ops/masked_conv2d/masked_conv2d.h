#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Convolution that is computed where a mask says so.
struct MaskedConv2d {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};

  static constexpr const char* kName = "masked_conv2d";
  static constexpr Signature kSignature =
      "features: T[1, C, H, W], mask: M[1, OH = H + 2*padding[0] - KH + 1, OW = W + 2*padding[1] - KW + 1], "
      "weight: T[K, C, KH, KW], bias?: T[K] -> output: T[1, K, OH, OW]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVMaskedConv2d"};
  static constexpr std::tuple kAttributes = {
      Attr("stride", &MaskedConv2d::stride, "steps of the filter: 1, as in MMCV").Between(1, 1),
      Attr("padding", &MaskedConv2d::padding, "zeros around the picture; one value serves both").Between(0, 1 << 20),
  };
  static constexpr Doc kDoc = {
      .summary = "Convolution that is computed where a mask is positive, and 0 elsewhere (guided anchoring).",
      .semantics =
          "The output is a convolution's where the mask is above 0 (true, where it is bool), and 0 without bias "
          "elsewhere, where the mask is NaN, too. The mask has the output's extents: those of the features where "
          "padding "
          "is (KH - 1) / 2 and (KW - 1) / 2. Sums are in float, in an order that depends on the instruction set but "
          "not on the threads.",
      .source =
          "Wang et al., Region Proposal by Guided Anchoring, 2019; `torch.nn.functional.conv2d` where the mask is "
          "positive",
      .differences = "MMCV has it on GPUs alone.",
  };
};

}  // namespace polyop
