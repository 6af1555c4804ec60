// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/sequence/scan_extents.h"

namespace polyop {

/// Computes the running sum or product along one dimension.
struct Cumulative {
  enum class Mode { kSum, kProd };

  int64_t axis = -1;
  Mode mode = Mode::kSum;
  int64_t exclusive = 0;
  int64_t reverse = 0;

  static constexpr const char* kName = "cumulative";
  static constexpr Signature kSignature = "input: T[...S] -> output: T[...S]";
  static constexpr NodeName kNodes[] = {
      NodeName("polyop::CumSum").Preset("mode", "sum"),
      NodeName("polyop::CumProd").Preset("mode", "prod"),
  };
  static constexpr std::tuple kAttributes = {
      Attr("axis", &Cumulative::axis, "the dimension of the scan; negative: from the last one"),
      Attr("mode", &Cumulative::mode, "sum or product; implied by the node's name").OneOf("sum", "prod"),
      Attr("exclusive", &Cumulative::exclusive,
           "1: an element of the output excludes that of the input at its position")
          .Between(0, 1),
      Attr("reverse", &Cumulative::reverse, "1: the scan begins with the last element").Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the running sum (or product) along a dimension.",
      .semantics = R"(output[i] is the sum (product) of input[0 .. i] along `axis`; if exclusive, of the elements before
          i, and 0 (1) for the first. If reverse, the scan begins with the last element. Elements are combined one after
          the other: real ones in double precision, rounded once for each output; integers wrap around. A GPU combines
          the elements of the last dimension in another order. A scalar is a line of one element. An empty input gives
          an empty output.)",
      .source = "`torch.cumsum`, `torch.cumprod`; ONNX's CumSum",
      .differences =
          "PyTorch accumulates float16 and bfloat16 in single precision, ONNX Runtime all in their own type.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckScanDim("axis", axis, inputs[0].shape); }
};

}  // namespace polyop
