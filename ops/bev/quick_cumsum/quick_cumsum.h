// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Sums features of points into the cells of a volume: the first version of the pooling to the bird's eye view.
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
      Attr("batch_size", &QuickCumsum::batch_size, "number of images").AtLeast(1).Required(),
      Attr("dimension", &QuickCumsum::dimension, "number of layers of the volume").AtLeast(1).Required(),
      Attr("height", &QuickCumsum::height, "number of rows of the volume").AtLeast(1).Required(),
      Attr("width", &QuickCumsum::width, "number of columns of the volume").AtLeast(1).Required(),
  };
  static constexpr Doc kDoc = {
      .summary = "Sums the features of points into the cells of a volume, interval by interval (BEVFusion).",
      .semantics = R"(Interval j consists of the interval_lengths[j] points from interval_starts[j] on, all of one
          cell. Their features are summed in this order, in float. A row of geom_feats is (row, column, layer,
          image); the row of the interval's last point determines the cell. Cells without an interval are 0. If
          several intervals have the same cell, the last one wins. An interval without points writes nothing. It is
          an error if a cell is outside the volume, or if an interval exceeds the points.)",
      .source = "Liu et al., BEVFusion, 2023; `bev_pool` of mmdet3d; QuickCumsumCuda of autoware_tensorrt_plugins",
      .differences = R"(BEVFusion uses the cell of the interval's first point; in valid inputs all points of an
          interval are of one cell.)",
  };
};

}  // namespace polyop
