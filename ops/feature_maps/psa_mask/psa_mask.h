// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Point-wise spatial attention: spreads each pixel's mask over its surroundings to a mask over the image.
struct PsaMask {
  enum class Type { kCollect, kDistribute };
  Type psa_type = Type::kCollect;
  std::array<int64_t, 2> mask_size = {1, 1};

  static constexpr const char* kName = "psa_mask";
  static constexpr Signature kSignature = "input: T[N, mask_size[0]*mask_size[1], H, W] -> output: T[N, H*W, H, W]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVPSAMask"};
  static constexpr std::tuple kAttributes = {
      Attr("psa_type", &PsaMask::psa_type,
           "collect: a mask weighs what its pixel receives; distribute: what its pixel contributes")
          .Codes("collect", "distribute"),
      Attr("mask_size", &PsaMask::mask_size, "rows and columns of a mask, odd; a single value applies to both")
          .Between(1, 1 << 15)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Point-wise spatial attention: spreads each pixel's mask over its surroundings to a mask over the
          image (PSANet).)",
      .semantics = R"(With mask_size = (2a + 1, 2b + 1), channel i * mask_size[1] + j of pixel (h, w) refers to the
          pixel (y, x) = (h + i - a, w + j - b), if it is in the image. `collect` writes it to channel y * W + x of
          pixel (h, w), `distribute` to channel h * W + w of pixel (y, x). The rest of the output is 0. Values are
          copied, including NaN. It is an error if a mask_size is even.)",
      .source = "Zhao et al., PSANet: Point-wise Spatial Attention Network for Scene Parsing, 2018; `mmcv.ops.PSAMask`",
      .differences = "none known",
  };

  Status Check() const {
    if (mask_size[0] % 2 == 1 && mask_size[1] % 2 == 1) return Status::Ok();
    return InvalidArgument("attribute 'mask_size': expected odd numbers, got [", mask_size[0], ", ", mask_size[1], "]");
  }
};

}  // namespace polyop
