// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Sums depth-weighted camera features into the cells of a bird's-eye view.
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
      Attr("out_height", &BevPool::out_height, "rows of the bird's-eye view").AtLeast(1).Also("output_height"),
      Attr("out_width", &BevPool::out_width, "columns of the bird's-eye view").AtLeast(1).Also("output_width"),
      Attr("output_z", &BevPool::output_z,
           "layers of the bird's-eye view; nodes with several layers are handled by `bev_pool_volume`")
          .Between(1, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Sums depth-weighted camera features into the cells of a bird's-eye view (BEVDet, version 2).",
      .semantics = R"(Interval j holds the ranks r in [interval_starts[j], interval_starts[j] + interval_lengths[j]).
          The sum over them of depth[ranks_depth[r]] * feat[ranks_feat[r], :], in this order and in fp32, is written to
          cell ranks_bev[interval_starts[j]] of the view. Ranks are flat indices: into `depth`, and into `feat` and
          `bev` without their channel dimension. A cell without an interval is 0. If two intervals have the same cell,
          the last one wins. An interval without ranks writes nothing. A rank of an interval that is out of range is an
          error, and so is an interval that does not lie within the ranks.)",
      .source = "Huang et al., BEVDet4D, 2022; `bev_pool_v2` of BEVDet and of mmdet3d",
      .differences = "BEVDet's kernels accumulate fp16 in fp16.",
  };
};

}  // namespace polyop
