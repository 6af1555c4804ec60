#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Point-wise spatial attention: each pixel's mask over its surroundings becomes one over the picture.
struct PsaMask {
  enum class Type { kCollect, kDistribute };
  Type psa_type = Type::kCollect;
  std::array<int64_t, 2> mask_size = {1, 1};

  static constexpr const char* kName = "psa_mask";
  static constexpr Signature kSignature = "input: T[N, mask_size[0]*mask_size[1], H, W] -> output: T[N, H*W, H, W]";
  static constexpr NodeName kNodes[] = {"mmcv::MMCVPSAMask"};
  static constexpr std::tuple kAttributes = {
      Attr("psa_type", &PsaMask::psa_type, "whether a pixel's mask is of what it takes, or of what it gives")
          .Codes("collect", "distribute"),
      Attr("mask_size", &PsaMask::mask_size, "rows and columns of a mask, odd; one value serves both")
          .Between(1, 1 << 15)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Spreads each pixel's mask over its surroundings to a mask over the picture (PSANet).",
      .semantics =
          "With mask_size = (2a + 1, 2b + 1), channel i * mask_size[1] + j of pixel (h, w) is about the pixel (y, x) = "
          "(h "
          "+ i - a, w + j - b), if the picture has it. `collect` puts it into channel y * W + x of pixel (h, w), "
          "`distribute` into channel h * W + w of pixel (y, x). The rest is 0. Values are copied, NaN too. A mask_size "
          "that is even is an error.",
      .source = "Zhao et al., PSANet: Point-wise Spatial Attention Network for Scene Parsing, 2018; `mmcv.ops.PSAMask`",
      .differences = "none known",
  };

  Status Check() const {
    if (mask_size[0] % 2 == 1 && mask_size[1] % 2 == 1) return Status::Ok();
    return InvalidArgument("attribute 'mask_size' is [", mask_size[0], ", ", mask_size[1], "], wanted odd numbers");
  }
};

}  // namespace polyop
