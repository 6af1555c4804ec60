// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Reduces rows of features segment by segment.
struct SegmentCsr {
  enum class Reduce { kSum, kMean, kMul, kDiv, kMin, kMax };
  Reduce reduce = Reduce::kSum;

  static constexpr const char* kName = "segment_csr";
  static constexpr Signature kSignature = "src: T[E, F], indptr: I[P] -> out: T[max(P - 1, 0), F]";
  static constexpr NodeName kNodes[] = {"autoware::SegmentCSR", "polyop::SegmentCSR", "::SegmentCSR"};
  static constexpr std::tuple kAttributes = {
      Attr("reduce", &SegmentCsr::reduce, "how to reduce the rows of a segment")
          .OneOf("sum", "mean", "mul", "div", "min", "max"),
  };
  static constexpr Doc kDoc = {
      .summary = "Reduces rows of features segment by segment: sum, mean, product, minimum or maximum.",
      .semantics = R"(Segment m consists of the rows indptr[m] to indptr[m + 1] - 1; rows before indptr[0] and from
          the last indptr on belong to no segment. A segment without rows gives 0; for mul and div it gives 1. div
          divides 1 by each row. min and max ignore NaN; a column that contains only NaN gives NaN. Rows are reduced
          in order, in float. It is an error if an indptr is negative, less than the one before it, or greater than
          E.)",
      .source = "`torch_scatter.segment_csr`, as Autoware exports Point Transformer V3",
      .differences = "torch_scatter does not check indptr and may read out of bounds.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs[1].shape[0] > 0) return Status::Ok();
    return InvalidArgument("'indptr': expected at least 1 element, got shape [0]");
  }
};

}  // namespace polyop
