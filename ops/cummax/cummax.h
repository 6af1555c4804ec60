#pragma once

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
};

}  // namespace polyop
