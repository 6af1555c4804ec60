// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/sparse/implicit_gemm/implicit_gemm.h"

namespace polyop {

/// The gradients with respect to features, filters and bias. The slope of the activation follows from its result.
struct ImplicitGemmBackward : GradientOf<ImplicitGemm> {
  static constexpr const char* kName = "implicit_gemm_backward";
  static constexpr Signature kSignature =
      "grad_out: T[O, K], features: T[N, C], filters: T[K, KZ, KY, KX, C], pair_fwd: I[KZ * KY * KX, O], "
      "pair_mask: I[O, *], mask_argsort: I[O], bias?: T[K], out: T[O, K] -> "
      "grad_features?: T[N, C], grad_filters?: T[K, KZ, KY, KX, C], grad_bias?: T[K]";

  Status Check() const {
    POLYOP_RETURN_IF_ERROR(ImplicitGemm::Check());
    if (act_type != SparseActivation::kLeakyRelu || act_alpha >= 0) return Status::Ok();
    return InvalidArgument(
        "attribute 'act_alpha': expected at least 0 for a gradient, because the result of a leaky "
        "ReLU with a negative slope does not tell the sign of its argument; got ",
        act_alpha);
  }
  Status CheckInputs(std::span<const AnyTensor> inputs) const { return ImplicitGemm::CheckInputs(inputs.subspan(1)); }
};

}  // namespace polyop
