#pragma once

#include "core/operator.h"

namespace polyop {

/// Points' features summed into the cells of a volume: the first version of the pooling to a bird's eye view.
struct QuickCumsum {
  int64_t batch_size = 1;
  int64_t dimension = 1;
  int64_t height = 128;
  int64_t width = 128;

  static constexpr const char* kName = "quick_cumsum";
  static constexpr Signature kSignature =
      "x: T[P, C], geom_feats: I[P, 4], interval_lengths: I[S], interval_starts: I[S] -> "
      "bev: T[batch_size, dimension, height, width, C]";
  static constexpr NodeName kNodes[] = {"autoware::QuickCumsumCuda", "polyop::QuickCumsumCuda", "::QuickCumsumCuda"};
  static constexpr std::tuple kAttributes = {
      Attr("batch_size", &QuickCumsum::batch_size, "pictures").AtLeast(1).Required(),
      Attr("dimension", &QuickCumsum::dimension, "layers of the volume").AtLeast(1).Required(),
      Attr("height", &QuickCumsum::height, "rows of the volume").AtLeast(1).Required(),
      Attr("width", &QuickCumsum::width, "columns of the volume").AtLeast(1).Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Sums points' features into the cells of a volume, interval by interval (BEVFusion).",
      .semantics =
          "Interval j holds the points from interval_starts[j] on, interval_lengths[j] of them, all of one cell. Their "
          "features are summed in this order and in float. A row of geom_feats is (row, column, layer, picture); that "
          "of the interval's last point says where the sum goes. Cells of no interval are 0; of two intervals of one "
          "cell the last wins; an interval without points writes nothing. A cell outside of the volume, and an "
          "interval that does not lie in the points, are errors.",
      .source = "Liu et al., BEVFusion, 2023; `bev_pool` of mmdet3d; QuickCumsumCuda of autoware_tensorrt_plugins",
      .differences = "BEVFusion takes the cell of the interval's first point; in a valid file all are of one cell.",
  };
};

}  // namespace polyop
