// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Normalizes every channel of every sample to mean 0 and variance 1, then scales and shifts it.
struct InstanceNorm {
  float epsilon = 1e-5f;

  static constexpr const char* kName = "instance_norm";
  static constexpr Signature kSignature = "input: T[N, C, L, ...S], scale: T[C], B: T[C] -> output: T[N, C, L, ...S]";
  static constexpr NodeName kNodes[] = {
      "mmcv::MMCVInstanceNormalization",
      "mmdeploy::MMCVInstanceNormalization",
      "custom::MMCVInstanceNormalization",
      "mmcv::TRTInstanceNormalization",
      "mmdeploy::TRTInstanceNormalization",
      "custom::TRTInstanceNormalization",
      NodeName("polyop::InstanceNormalization").Mirror(6).Mirror(22),
  };
  static constexpr std::tuple kAttributes = {
      Attr("epsilon", &InstanceNorm::epsilon, "added to the variance").AtLeast(0),
  };
  static constexpr Doc kDoc = {
      .summary = "Instance normalization: normalizes each channel of each sample by its mean and variance.",
      .semantics = R"(output = (input - mean) / sqrt(variance + epsilon) * scale + B, with the mean and the biased
          variance over all dimensions after the channels. The sums are exact to fp32, however large the mean or the
          channel is. A channel that contains NaN or infinity becomes NaN; a channel of a single element becomes B.
          An empty input gives an empty output.)",
      .source = R"(D. Ulyanov, A. Vedaldi, V. Lempitsky, Instance Normalization: The Missing Ingredient for Fast
          Stylization, 2016; `torch.nn.functional.instance_norm`)",
      .differences =
          "In training mode, torch rejects channels of a single element; ONNX and this operator accept them.",
  };

  /// ONNX Runtime, which sums in float, is faster for many small channels.
  bool LeaveToStandard(std::span<const AnyTensor> inputs) const {
    constexpr int64_t kSmall = 1024, kMany = 64;
    const Shape& shape = inputs[0].shape;
    const int64_t all = shape.NumElements().value_or(0), channels = shape[0] * shape[1];
    return inputs[0].dtype == DType::kF32 && channels >= kMany && all / channels < kSmall;
  }
};

}  // namespace polyop
