// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Finds the elements that are not 0, or those that begin a run of equal elements.
struct FindIndices {
  enum class Mode { kNonZero, kRunStarts };

  Mode mode = Mode::kNonZero;
  int64_t dimensions = 1;

  static constexpr const char* kName = "find_indices";
  static constexpr Signature kSignature = "x: T[...S] -> indices: i64[K<=size(x), dimensions]";
  static constexpr NodeName kNodes[] = {
      NodeName("polyop::NonZero").Preset("mode", "nonzero"),
      NodeName("polyop::RunStarts").Preset("mode", "run_starts"),
  };
  static constexpr std::tuple kAttributes = {
      Attr("mode", &FindIndices::mode,
           "nonzero: elements that are not 0; run_starts: the first element, and those that differ from the element "
           "before them in memory; implied by the node's name")
          .OneOf("nonzero", "run_starts"),
      Attr("dimensions", &FindIndices::dimensions,
           "number of coordinates of an index; 1: the position in the flattened tensor")
          .Between(1, kMaxRank),
  };
  static constexpr Doc kDoc = {
      .summary = "Finds the indices of the elements that are not 0, or that differ from the element before them.",
      .semantics = R"(A row of `indices` has the coordinates of an element, in the order of memory. If `x` has more
          than `dimensions` dimensions, the first ones count as one; if it has fewer, the first coordinates are 0. NaN
          is not 0, and differs from NaN.)",
      .source = "`torch.nonzero`, `torch.unique_consecutive`; NonZero of ONNX",
      .differences = "ONNX's NonZero returns a row for each coordinate.",
  };
};

/// The last `dimensions` extents of a tensor. The first one counts all before it, too.
struct IndexExtents {
  int dimensions;
  int64_t extent[kMaxRank];

  IndexExtents(const Shape& shape, int64_t coordinates) : dimensions(static_cast<int>(coordinates)) {
    const int first = shape.rank() - dimensions;
    for (int c = 0; c < dimensions; ++c) extent[c] = first + c >= 0 ? shape[first + c] : 1;
    for (int d = 0; d < first; ++d) extent[0] *= shape[d];
  }
};

}  // namespace polyop
