// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Sums depth-weighted camera features into the cells of a bird's-eye view of several layers.
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
      Attr("out_height", &BevPoolVolume::out_height, "rows of the bird's-eye view").AtLeast(1).Also("output_height"),
      Attr("out_width", &BevPoolVolume::out_width, "columns of the bird's-eye view").AtLeast(1).Also("output_width"),
      Attr("output_z", &BevPoolVolume::output_z,
           "layers of the bird's-eye view; nodes with one layer are handled by `bev_pool`")
          .AtLeast(2)
          .Required(),
  };
  static constexpr Doc kDoc = {
      .summary = R"(Sums depth-weighted camera features into the cells of a bird's-eye view of several layers (BEVDet,
          version 2, and FlashOCC).)",
      .semantics = R"(Like `bev_pool`, with layers: `ranks_bev` numbers cells as (z * out_height + y) * out_width + x,
          as the view transformers of BEVDet and FlashOCC do.)",
      .source = "Huang et al., BEVDet4D, 2022; Yu et al., FlashOCC, 2023; `bev_pool_v2` of both",
      .differences = R"(The output shape is the one that FlashOCC's TensorRT plugin declares. FlashOCC's PyTorch
          function returns [1, C, output_z, out_height, out_width] if there are several layers, and a file that was
          traced with it expects that shape: insert a Transpose with perm [0, 4, 1, 2, 3] after the node. BEVDet's
          kernels accumulate fp16 in fp16.)",
  };
};

}  // namespace polyop
