#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Pillars' features put at their places in a picture that is 0 elsewhere.
struct PillarScatter {
  std::array<int64_t, 2> dense_shape{1, 1};
  int64_t batch_size = 1;

  static constexpr const char* kName = "pillar_scatter";
  static constexpr Signature kSignatures[] = {
      "features: T[P, C], coords: I[P, 4], num?: I[1] -> canvas: T[batch_size, C, dense_shape[0], dense_shape[1]]",
      "features: T[N, P, C], coords: I[N, P, 4], num: I[N] -> canvas: T[N, C, dense_shape[0], dense_shape[1]]",
  };
  static constexpr NodeName kNodes[] = {"polyop::PillarScatter",       "polyop::PPScatterPlugin",
                                        "polyop::PillarScatterPlugin", "TRT::PillarScatterPlugin",
                                        "::PPScatterPlugin",           "::PillarScatterPlugin"};
  static constexpr std::tuple kAttributes = {
      Attr("dense_shape", &PillarScatter::dense_shape, "height and width of the canvas")
          .AtLeast(1)
          .Required()
          .Also("output_shape"),
      Attr("batch_size", &PillarScatter::batch_size,
           "pictures, where the first coordinate says whose the pillar is; else it must be 1")
          .AtLeast(1),
  };
  static constexpr Doc kDoc = {
      .summary = "Puts the features of pillars at their places in a picture that is 0 elsewhere (PointPillars).",
      .semantics =
          "A row of coords is (picture, z, y, x): canvas[picture, :, y, x] is the row of features; z is not looked at. "
          "The last of several pillars of one place wins. With `num` only the first num pillars are put, and all of "
          "them into the one picture, or the one that they are given for, whatever the row says. A place outside of "
          "the canvas, and a num that is negative or greater than the number of pillars, are errors.",
      .source =
          "Lang et al., PointPillars, 2019; PointPillarsScatter of OpenPCDet and mmdet3d; TensorRT's "
          "PillarScatterPlugin and PPScatterPlugin of CUDA-PointPillars, which have `num`",
      .differences = "Both plugins read 64 channels whatever the features have, and check no place.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& features = inputs[0].shape;
    const bool counted = features.rank() == 3 || GivenInput(inputs, 2) != nullptr;
    if (counted && batch_size != 1) {
      return InvalidArgument("attribute 'batch_size' is ", batch_size, ", wanted 1 where 'num' is given");
    }
    const int64_t pillars = features[0] * (features.rank() == 3 ? features[1] : 1);
    if (features.NumElements() > 0 && pillars > INT32_MAX) {
      return InvalidArgument("'features' has shape ", ToString(features), ": pillars must fit 32 bits");
    }
    return Status::Ok();
  }
};

}  // namespace polyop
