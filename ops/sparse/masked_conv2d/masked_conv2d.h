// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Convolution that is evaluated only where a mask is positive.
struct MaskedConv2d {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};

  static constexpr const char* kName = "masked_conv2d";
  static constexpr Signature kSignature =
      "features: T[1, C, H, W], mask: M[1, OH = H + 2*padding[0] - KH + 1, OW = W + 2*padding[1] - KW + 1], "
      "weight: T[K, C, KH, KW], bias?: T[K] -> output: T[1, K, OH, OW]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVMaskedConv2d"};
  static constexpr std::tuple kAttributes = {
      Attr("stride", &MaskedConv2d::stride, "stride of the filter; must be 1, as in MMCV").Between(1, 1),
      Attr("padding", &MaskedConv2d::padding, "zero padding along y and x; a single value applies to both")
          .Between(0, 1 << 20),
  };
  static constexpr Doc kDoc = {
      .summary = "Convolution that is evaluated only where a mask is positive, and is 0 elsewhere (guided anchoring).",
      .semantics = R"(Where the mask is greater than 0 (for bool: true), the output is that of a convolution.
          Elsewhere, also where the mask is NaN, it is 0, without bias. The mask has the spatial shape of the
          output, which is that of the features if padding is (KH - 1) / 2 and (KW - 1) / 2. Sums are accumulated in
          float, in an order that depends on the instruction set but not on the number of threads.)",
      .source = R"(Wang et al., Region Proposal by Guided Anchoring, 2019; `torch.nn.functional.conv2d` where the
          mask is positive)",
      .differences = "MMCV has a GPU kernel only.",
  };
};

}  // namespace polyop
