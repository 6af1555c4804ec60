#pragma once

#include "core/operator.h"
#include "families/sparse/activation.h"

namespace polyop {

/// A sparse convolution's products, by a table of the rows that feed each output.
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
      Attr("is_subm", &ImplicitGemm::is_subm, "without effect"),
      Attr("fp32_accum", &ImplicitGemm::fp32_accum, "without effect: sums are in float"),
      Attr("act_alpha", &ImplicitGemm::act_alpha, "what a leaky ReLU multiplies negative numbers by"),
      Attr("act_beta", &ImplicitGemm::act_beta, "without effect"),
      Attr("output_scale", &ImplicitGemm::output_scale, "must be 1"),
      Attr("output_add_scale", &ImplicitGemm::output_add_scale, "must be 0"),
      Attr("act_type", &ImplicitGemm::act_type, "what follows the sums").Codes("none", "relu", "sigmoid", "leaky_relu"),
  };
  static constexpr Doc kDoc = {
      .summary = "Multiplies the rows that feed each output of a sparse convolution with the filter, and sums them.",
      .semantics =
          "out[o] is the activation of the sum over places f of the filter, where pair_fwd[f, o] names a row of "
          "features, of filters[:, f, :] times that row, and of the bias. f counts the filter's KZ x KY x KX places. A "
          "negative pair_fwd is none; one from N on is an error. pair_mask and mask_argsort are not looked at. An "
          "output "
          "that nothing feeds is the activation of the bias. Sums are in float, in an order that depends on the "
          "instruction set but not on the threads. NaN and infinity reach the outputs that their rows feed alone. ReLU "
          "and leaky ReLU leave NaN what it is.",
      .source =
          "spconv 2.x `implicit_gemm`, as autoware_tensorrt_plugins has it; "
          "get_indice_pairs_implicit_gemm makes the pairs",
      .differences = "In spconv a wrong mask or order gives wrong results.",
  };

  Status Check() const {
    if (is_train != 0) return InvalidArgument("attribute 'is_train' is ", is_train, ", wanted 0");
    if (output_scale != 1) return InvalidArgument("attribute 'output_scale' is ", output_scale, ", wanted 1");
    if (output_add_scale == 0) return Status::Ok();
    return InvalidArgument("attribute 'output_add_scale' is ", output_add_scale, ", wanted 0");
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const Shape &features = inputs[0].shape, &pairs = inputs[2].shape;
    if (features[0] <= INT32_MAX && pairs[1] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'features' has ", features[0], " rows and 'pair_fwd' ", pairs[1],
                           " outputs, which must fit 32 bits");
  }
  ActivationRule activation() const { return {act_type, act_alpha}; }
};

}  // namespace polyop
