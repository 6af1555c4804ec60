// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"
#include "ops/sparse/activation.h"

namespace polyop {

/// The matrix products of a sparse convolution, given a table of the input rows of each output.
struct ImplicitGemm {
  int64_t is_train = 0;
  int64_t is_subm = 0;
  int64_t fp32_accum = 1;
  float act_alpha = 0;
  float act_beta = 0;
  float output_scale = 1;
  float output_add_scale = 0;
  SparseActivation act_type = SparseActivation::kNone;

  static constexpr const char* kName = "implicit_gemm";
  static constexpr Signature kSignature =
      "features: T[N, C], filters: T[K, KZ, KY, KX, C], pair_fwd: I[KZ * KY * KX, O], pair_mask: I[O, *], "
      "mask_argsort: I[O], bias?: T[K] -> out: T[O, K]";
  static constexpr NodeName kNodes[] = {"autoware::ImplicitGemm", "polyop::ImplicitGemm"};
  static constexpr std::tuple kAttributes = {
      Attr("is_train", &ImplicitGemm::is_train, "must be 0"),
      Attr("is_subm", &ImplicitGemm::is_subm, "has no effect"),
      Attr("fp32_accum", &ImplicitGemm::fp32_accum, "has no effect: sums are in float"),
      Attr("act_alpha", &ImplicitGemm::act_alpha, "negative slope of the leaky ReLU"),
      Attr("act_beta", &ImplicitGemm::act_beta, "has no effect"),
      Attr("output_scale", &ImplicitGemm::output_scale, "must be 1"),
      Attr("output_add_scale", &ImplicitGemm::output_add_scale, "must be 0"),
      Attr("act_type", &ImplicitGemm::act_type, "activation that is applied to the sums")
          .Codes("none", "relu", "sigmoid", "leaky_relu"),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes a sparse convolution from a table of the input rows of each output.",
      .semantics = R"(out[o] is the activation of bias + the sum over f of filters[:, f, :] times
          features[pair_fwd[f, o]], where f counts the KZ x KY x KX positions of the filter. A negative pair_fwd
          means that no input contributes at that position; a value of N or more is an error. pair_mask and
          mask_argsort are ignored. An output without inputs is the activation of the bias.

          Sums are accumulated in float, in an order that depends on the instruction set but not on the number of
          threads. NaN and infinity affect only the outputs that their rows contribute to. ReLU and leaky ReLU
          propagate NaN.)",
      .source = R"(spconv 2.x `implicit_gemm`, as in autoware_tensorrt_plugins; get_indice_pairs_implicit_gemm
          computes the pairs)",
      .differences = "In spconv, a wrong mask or order gives wrong results.",
  };

  Status Check() const {
    if (is_train != 0) return InvalidArgument("attribute 'is_train': expected 0, got ", is_train);
    if (output_scale != 1) return InvalidArgument("attribute 'output_scale': expected 1, got ", output_scale);
    if (output_add_scale == 0) return Status::Ok();
    return InvalidArgument("attribute 'output_add_scale': expected 0, got ", output_add_scale);
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &features = inputs[0].shape, &pairs = inputs[2].shape;
    if (features[0] <= INT32_MAX && pairs[1] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'features' and 'pair_fwd': expected at most ", INT32_MAX, " rows and outputs, got ",
                           features[0], " and ", pairs[1]);
  }
  ActivationRule activation() const { return {act_type, act_alpha}; }
};

}  // namespace polyop
