// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Reads a correlation volume around the current flow.
struct CorrelationLookup {
  std::array<int64_t, 2> radius = {4, 4};

  static constexpr const char* kName = "correlation_lookup";
  static constexpr Signature kSignature =
      "volume: T[N, H, W, rows, columns], coords: P[N, 2, H, W] -> "
      "output: T[N, (2*radius[0] + 1)*(2*radius[1] + 1), H, W]";
  static constexpr NodeName kNodes[] = {"polyop::CorrelationLookup"};
  static constexpr std::tuple kAttributes = {
      Attr("radius", &CorrelationLookup::radius,
           "rows and columns on each side of the position; a single value applies to both")
          .Between(0, 64),
  };
  static constexpr Doc kDoc = {
      .summary = "Samples a correlation volume in windows around positions (RAFT's lookup).",
      .semantics = R"(volume[n, y, x] has the correlations of a pixel with all pixels of another image, and coords[n, :,
          y, x] is the position (column, row) in that image. Channel i * (2 * radius[0] + 1) + j of the output is the
          bilinear sample at (column + i - radius[1], row + j - radius[0]): rows vary fastest. Pixels outside of the
          other image are 0. A position that is NaN or at least 2^40 from 0 reads nothing. Accumulates in fp32. A
          volume of one row and `radius` = [0, r] is RAFT-Stereo's lookup along lines. In PyTorch, differentiable with
          respect to the volume.)",
      .source = R"(Teed and Deng, RAFT: Recurrent All-Pairs Field Transforms for Optical Flow, 2020; Lipson et al.,
          RAFT-Stereo, 2021)",
  };
};

}  // namespace polyop
