#pragma once

#include "core/operator.h"

namespace polyop {

/// Samples pictures or volumes at given coordinates: grid_sample.
struct GridSampler {
  enum class Interpolation { kBilinear, kNearest, kBicubic };
  enum class Padding { kZeros, kBorder, kReflection };
  Interpolation interpolation_mode = Interpolation::kBilinear;
  Padding padding_mode = Padding::kZeros;
  bool align_corners = false;

  static constexpr const char* kName = "grid_sampler";
  static constexpr Signature kSignatures[] = {
      "input: T[N, C, H, W], grid: T[N, OH, OW, 2] -> output: T[N, C, OH, OW]",
      "input: T[N, C, D, H, W], grid: T[N, OD, OH, OW, 3] -> output: T[N, C, OD, OH, OW]",
  };
  static constexpr NodeName kNodes[] = {
      "mmcv::grid_sampler",
      "mmdeploy::grid_sampler",
      NodeName("polyop::GridSample")
          .Rename("interpolation_mode", "mode")
          .Spell("bilinear", "linear")
          .Spell("bicubic", "cubic")
          .Mirror(16)
          .Mirror(20)
          .Mirror(22),
  };
  static constexpr std::tuple kAttributes = {
      Attr("interpolation_mode", &GridSampler::interpolation_mode, "how values between pixels are made")
          .Codes("bilinear", "nearest", "bicubic"),
      Attr("padding_mode", &GridSampler::padding_mode, "what lies outside of the picture")
          .Codes("zeros", "border", "reflection"),
      Attr("align_corners", &GridSampler::align_corners,
           "whether -1 and 1 are the outer pixels' centres or their outer edges"),
  };
  static constexpr Doc kDoc = {
      .summary = "Samples a picture or a volume at the coordinates that a grid gives.",
      .semantics =
          "The last dimension of the grid is (x, y) or (x, y, z), -1 to 1 over the picture. `nearest` rounds halves to "
          "even. "
          "Bicubic (a = -0.75) exists for pictures only. Coordinates are computed in float. A NaN coordinate samples "
          "nothing "
          "with padding zeros (the result is 0) and pixel 0 of its axis with the others; so does infinity with zeros "
          "and "
          "reflection, while border takes the edge. Coordinates beyond 2^24 pixels are taken as 2^24.",
      .source = "`torch.nn.functional.grid_sample`",
      .differences = "torch leaves NaN coordinates undefined. MMDeploy has no volumes.",
  };

  /// ONNX rounds a coordinate before it is reflected, torch afterwards: halves differ.
  bool LeaveToStandard(std::span<const AnyTensor>) const {
    return interpolation_mode == Interpolation::kNearest && padding_mode == Padding::kReflection;
  }

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &input = inputs[0].shape, &grid = inputs[1].shape;
    if (input.rank() == 5 && interpolation_mode == Interpolation::kBicubic) {
      return InvalidArgument(
          "attribute 'interpolation_mode' is bicubic, which exists for 4-D input only; 'input' has shape ",
          ToString(input));
    }
    if (input[0] == 0 || input[1] == 0 || grid.NumElements() == 0) return Status::Ok();  // there is nothing to sample
    int64_t pixels = 1;
    for (int d = 2; d < input.rank(); ++d) {
      if (input[d] > 0 && pixels > (INT32_MAX - 1) / input[d]) {
        return InvalidArgument("'input' has shape ", ToString(input), ": pixels of a plane must fit 32 bits");
      }
      pixels *= input[d];
    }
    if (pixels > 0) return Status::Ok();
    return InvalidArgument("'input' has shape ", ToString(input), ": a plane without pixels cannot be sampled");
  }
};

/// The pixels of a plane.
inline int64_t PlanePixels(const Shape& input) {
  int64_t pixels = 1;
  for (int d = 2; d < input.rank(); ++d) pixels *= input[d];
  return pixels;
}

}  // namespace polyop
