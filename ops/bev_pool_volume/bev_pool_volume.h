#pragma once

#include "core/operator.h"

namespace polyop {

/// Camera features, weighted by depth, summed into the cells of a bird's eye view of several layers.
struct BevPoolVolume {
  int64_t out_height = 128;
  int64_t out_width = 128;
  int64_t output_z = 2;

  static constexpr const char* kName = "bev_pool_volume";
  static constexpr Signature kSignature =
      "depth: T[N, D, H, W], feat: T[N, H, W, C], ranks_depth: I[R], ranks_feat: I[R], ranks_bev: I[R], "
      "interval_starts: I[S], interval_lengths: I[S] -> bev: T[1, output_z, out_height, out_width, C]";
  static constexpr NodeName kNodes[] = {
      NodeName("mmdeploy::bev_pool_v2").When("output_z", 2), NodeName("polyop::BEVPoolV2TRT").When("output_z", 2),
      NodeName("polyop::BEVPoolV2TRT2").When("output_z", 2), NodeName("custom::BEVPoolV2TRT").When("output_z", 2),
      NodeName("custom::BEVPoolV2TRT2").When("output_z", 2), NodeName("::BEVPoolV2TRT").When("output_z", 2),
      NodeName("::BEVPoolV2TRT2").When("output_z", 2)};
  static constexpr std::tuple kAttributes = {
      Attr("out_height", &BevPoolVolume::out_height, "rows of the bird's eye view").AtLeast(1).Also("output_height"),
      Attr("out_width", &BevPoolVolume::out_width, "columns of the bird's eye view").AtLeast(1).Also("output_width"),
      Attr("output_z", &BevPoolVolume::output_z, "layers of the bird's eye view: nodes of 1 are `bev_pool`'s")
          .AtLeast(2)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary =
          "Sums camera features, weighted by depth, into the cells of a bird's eye view of several layers "
          "(BEVDet, version 2, and FlashOCC).",
      .semantics =
          "As `bev_pool`, with layers: ranks_bev counts cells as (z * out_height + y) * out_width + x, as BEVDet's and "
          "FlashOCC's view transformers number them.",
      .source = "Huang et al., BEVDet4D, 2022; Yu et al., FlashOCC, 2023; `bev_pool_v2` of both",
      .differences =
          "The shape is what FlashOCC's TensorRT plugin declares. Its function for PyTorch gives [1, C, output_z, "
          "out_height, out_width] where there are several layers, and a file that was traced with it goes on with "
          "that: "
          "there, a Transpose by [0, 4, 1, 2, 3] has to follow the node. BEVDet's kernels sum fp16 in fp16.",
  };
};

}  // namespace polyop
