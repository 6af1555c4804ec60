// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/sequence/scan_extents.h"

namespace polyop {

/// Computes the running maximum or minimum along one dimension, and its index.
struct CumMax {
  enum class Mode { kMax, kMin };

  int64_t dim = 0;
  Mode mode = Mode::kMax;

  static constexpr const char* kName = "cummax";
  static constexpr Signature kSignature = "input: T[...S] -> values: T[...S], indices: i64[...S]";
  static constexpr NodeName kNodes[] = {
      NodeName("mmcv::cummax").Preset("mode", "max"),
      NodeName("mmcv::cummin").Preset("mode", "min"),
  };
  static constexpr std::tuple kAttributes = {
      Attr("dim", &CumMax::dim, "dimension of the scan; a negative value counts from the last dimension").Required(),
      Attr("mode", &CumMax::mode, "maximum or minimum; implied by the node's name").OneOf("max", "min"),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes the running maximum (or minimum) along a dimension, and its index.",
      .semantics = R"(values[i] is the maximum (minimum) of input[0 .. i] along `dim`, and indices[i] its index: the
          last one if there are several. NaN compares greater (less) than every number: from the first NaN on, the value
          is NaN and the index that of the latest NaN. A scalar is its own maximum, with index 0. An empty input gives
          empty outputs.)",
      .source = "`torch.cummax`, `torch.cummin`",
      .differences = "MMCV's operator for ONNX Runtime skips NaN.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const { return CheckScanDim("dim", dim, inputs[0].shape); }
};

}  // namespace polyop
