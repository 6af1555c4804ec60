// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "core/operator.h"

namespace polyop {

/// Scatters the features of pillars into a canvas of zeros.
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
      Attr("batch_size", &PillarScatter::batch_size, "number of images; must be 1 if `num` is given").AtLeast(1),
  };
  static constexpr Doc kDoc = {
      .summary = "Scatters the features of pillars into an image that is 0 elsewhere (PointPillars).",
      .semantics = R"(A row of coords is (image, z, y, x): canvas[image, :, y, x] becomes the row of features; z is
          ignored. If several pillars have the same position, the last one wins. If `num` is given, only the first
          num pillars are used; they are written to the one image, or in the batched form to the image of their
          batch entry, and the image in their row is ignored. It is an error if a position is outside the canvas, or
          if num is negative or greater than the number of pillars.)",
      .source = R"(Lang et al., PointPillars, 2019; PointPillarsScatter of OpenPCDet and mmdet3d; TensorRT's
          PillarScatterPlugin and PPScatterPlugin of CUDA-PointPillars, which have `num`)",
      .differences = "Both plugins read 64 channels, whatever the shape of the features, and do not check positions.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape& features = inputs[0].shape;
    const bool counted = features.rank() == 3 || GivenInput(inputs, 2) != nullptr;
    if (counted && batch_size != 1) {
      return InvalidArgument("attribute 'batch_size': expected 1 if 'num' is given, got ", batch_size);
    }
    const int64_t pillars = features[0] * (features.rank() == 3 ? features[1] : 1);
    if (features.NumElements() > 0 && pillars > INT32_MAX) {
      return InvalidArgument("'features': expected at most ", INT32_MAX, " pillars, got shape ", ToString(features));
    }
    return Status::Ok();
  }
};

}  // namespace polyop
