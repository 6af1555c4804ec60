#pragma once

#include <algorithm>

#include "core/operator.h"

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

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& input = inputs[0].shape;
    const int64_t rank = std::max(input.rank(), 1);  // a scalar has dimension 0, as in PyTorch
    if (dim >= -rank && dim < rank) return Status::Ok();
    return InvalidArgument("attribute 'dim': expected a value in [", -rank, ", ", rank, ") for 'input' of shape ",
                           ToString(input), ", got ", dim);
  }
};

/// The number of elements before, along and after the scanned dimension.
struct ScanExtents {
  int64_t outer = 1, length = 1, inner = 1;

  static ScanExtents Of(const CumMax& op, const Shape& input) {
    ScanExtents extents;
    const int64_t dim = op.dim < 0 ? op.dim + std::max(input.rank(), 1) : op.dim;
    for (int d = 0; d < input.rank(); ++d) {
      (d < dim ? extents.outer : d > dim ? extents.inner : extents.length) *= input[d];
    }
    return extents;
  }
};

}  // namespace polyop
