#pragma once

#include "core/operator.h"

namespace polyop {

/// Camera features, weighted by depth, summed into the cells of a bird's eye view.
struct BevPool {
  int64_t out_height = 128;
  int64_t out_width = 128;
  int64_t output_z = 1;

  static constexpr const char* kName = "bev_pool";
  static constexpr Signature kSignature =
      "depth: T[N, D, H, W], feat: T[N, H, W, C], ranks_depth: I[R], ranks_feat: I[R], ranks_bev: I[R], "
      "interval_starts: I[S], interval_lengths: I[S] -> bev: T[1, out_height, out_width, C]";
  static constexpr NodeName kNodes[] = {"mmdeploy::bev_pool_v2", "polyop::BEVPoolV2TRT",  "polyop::BEVPoolV2TRT2",
                                        "custom::BEVPoolV2TRT",  "custom::BEVPoolV2TRT2", "::BEVPoolV2TRT",
                                        "::BEVPoolV2TRT2"};
  static constexpr std::tuple kAttributes = {
      Attr("out_height", &BevPool::out_height, "rows of the bird's eye view").AtLeast(1).Also("output_height"),
      Attr("out_width", &BevPool::out_width, "columns of the bird's eye view").AtLeast(1).Also("output_width"),
      Attr("output_z", &BevPool::output_z, "layers of the bird's eye view: nodes of more are `bev_pool_volume`'s")
          .Between(1, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Sums camera features, weighted by depth, into the cells of a bird's eye view (BEVDet, version 2).",
      .semantics =
          "Interval j holds the ranks r from interval_starts[j] on, interval_lengths[j] of them. The sum over them of "
          "depth[ranks_depth[r]] * feat[ranks_feat[r], :], in this order and in float, is row "
          "ranks_bev[interval_starts[j]] of the view; ranks count through the tensors without their last dimension "
          "of channels. Cells of no interval are 0; of two intervals of one cell the last wins; an interval without "
          "ranks writes nothing. A rank of an interval that lies outside of its tensor, and an interval that does not "
          "lie in the ranks, are errors.",
      .source = "Huang et al., BEVDet4D, 2022; `bev_pool_v2` of BEVDet and of mmdet3d",
      .differences = "BEVDet's kernels sum fp16 in fp16.",
  };
};

}  // namespace polyop
