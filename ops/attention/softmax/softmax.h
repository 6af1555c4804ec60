// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Softmax or its logarithm along any dimension.
struct Softmax {
  int64_t axis = -1;
  int64_t log = 0;

  static constexpr const char* kName = "softmax";
  static constexpr Signature kSignature = "x: T[L, ...S] -> y: T[L, ...S]";
  static constexpr NodeName kNodes[] = {
      NodeName("polyop::Softmax").Preset("log", "0"),
      NodeName("polyop::LogSoftmax").Preset("log", "1"),
  };
  static constexpr std::tuple kAttributes = {
      Attr("axis", &Softmax::axis, "the dimension along which the sums are 1; negative: from the last one"),
      Attr("log", &Softmax::log, "1: computes the logarithm").Between(0, 1),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes softmax, or its logarithm, along a dimension.",
      .semantics = R"(y = exp(x - m) / sum(exp(x - m)) with the maximum m along the dimension, or
          x - m - log(sum(exp(x - m))). Computed in float and rounded once. If a line of the dimension contains NaN or
          positive infinity, or nothing but negative infinity, all of it is NaN.)",
      .source = "ONNX's Softmax and LogSoftmax from opset 13 on; `torch.softmax`, `torch.log_softmax`",
      .differences = "Of older opsets, Softmax flattens the dimensions from `axis` on.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const int rank = inputs[0].shape.rank();
    if (axis >= -rank && axis < rank) return Status::Ok();
    return InvalidArgument("attribute 'axis': expected a value in [", -rank, ", ", rank - 1, "] for an input of rank ",
                           rank, ", got ", axis);
  }
};

/// A tensor as [outer, length, inner], of which the lines along the second dimension are normalized.
struct SoftmaxLines {
  int64_t outer = 1, length, inner = 1;

  SoftmaxLines(const Softmax& op, const Shape& shape) {
    const int axis = static_cast<int>(op.axis < 0 ? op.axis + shape.rank() : op.axis);
    length = shape[axis];
    for (int d = 0; d < axis; ++d) outer *= shape[d];
    for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
  }
};

}  // namespace polyop
