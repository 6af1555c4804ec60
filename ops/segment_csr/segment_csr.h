#pragma once

#include "core/operator.h"

namespace polyop {

/// Rows of features reduced segment by segment.
struct SegmentCsr {
  enum class Reduce { kSum, kMean, kMul, kDiv, kMin, kMax };
  Reduce reduce = Reduce::kSum;

  static constexpr const char* kName = "segment_csr";
  static constexpr Signature kSignature = "src: T[E, F], indptr: I[P] -> out: T[max(P - 1, 0), F]";
  static constexpr NodeName kNodes[] = {"autoware::SegmentCSR", "polyop::SegmentCSR", "::SegmentCSR"};
  static constexpr std::tuple kAttributes = {
      Attr("reduce", &SegmentCsr::reduce, "what is made of a segment's rows")
          .OneOf("sum", "mean", "mul", "div", "min", "max"),
  };
  static constexpr Doc kDoc = {
      .summary = "Reduces rows of features segment by segment: their sum, mean, product, least or greatest.",
      .semantics =
          "Segment m has the rows indptr[m] to indptr[m + 1] - 1; those before indptr[0] and from the last indptr on "
          "belong to none. A segment without rows gives 0, for mul and div 1. div is 1 divided by each row. min and "
          "max pass NaN over; rows of NaN alone give NaN. Rows are taken in their order, in float. An indptr that is "
          "negative, less than the one before it or greater than E is an error.",
      .source = "`torch_scatter.segment_csr`, as Autoware exports Point Transformer V3",
      .differences = "torch_scatter reads what indptr says, whether it is there or not.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs[1].shape[0] > 0) return Status::Ok();
    return InvalidArgument("'indptr' has shape [0], wanted at least one element");
  }
};

}  // namespace polyop
