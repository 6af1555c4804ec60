#pragma once

#include <algorithm>

#include "core/operator.h"

namespace polyop {

/// The running maximum or minimum along one dimension, and where it stands.
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
      Attr("dim", &CumMax::dim, "the dimension to run along; a negative one counts from the last").Required(),
      Attr("mode", &CumMax::mode, "which extremum; the node's name implies it").OneOf("max", "min"),
  };
  static constexpr Doc kDoc = {
      .summary = "The running maximum (or minimum) along a dimension, and its index.",
      .semantics =
          "values[i] is the greatest (least) of input[0 .. i] along `dim`, indices[i] the place of it, the last "
          "one if there are several. NaN counts as greater (less) than every number: from the first NaN on the "
          "value is NaN, with the index of the latest NaN. A scalar is its own maximum, with index 0. An empty "
          "input gives empty outputs.",
      .source = "`torch.cummax`, `torch.cummin`",
      .differences = "MMCV's operator for ONNX Runtime skips NaN.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& input = inputs[0].shape;
    const int64_t rank = std::max(input.rank(), 1);  // a scalar has a dimension 0, as in torch
    if (dim >= -rank && dim < rank) return Status::Ok();
    return InvalidArgument("attribute 'dim' is ", dim, ", wanted a value in [", -rank, ", ", rank,
                           "): 'input' has shape ", ToString(input));
  }
};

/// What lies before, along and behind the dimension that is scanned.
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
