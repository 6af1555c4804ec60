// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/gradient.h"
#include "ops/sparse/indice_conv/indice_conv.h"

namespace polyop {

/// The gradients with respect to features and filters.
struct IndiceConvBackward : GradientOf<IndiceConv> {
  static constexpr const char* kName = "indice_conv_backward";
  static constexpr Signature kSignature =
      "grad_out: T[O, K], features: T[N, C], filters: T[K, KZ, KY, KX, C], indice_pairs: I[2, KZ * KY * KX, P], "
      "indice_num_per_loc: I[KZ * KY * KX], num_act_out: I[] -> "
      "grad_features?: T[N, C], grad_filters?: T[K, KZ, KY, KX, C]";

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    POLYOP_RETURN_IF_ERROR(IndiceConv::CheckInputs(inputs.subspan(1)));
    const int64_t outputs = inputs[0].shape[0], rows = inputs[1].shape[0];
    if (outputs > INT32_MAX) {
      return InvalidArgument("'grad_out': expected at most ", INT32_MAX, " rows, got ", outputs);
    }
    if (!is_subm || outputs <= rows) return Status::Ok();
    return InvalidArgument("'grad_out': expected at most ", rows, " rows, as 'features' has, got ", outputs);
  }
};

}  // namespace polyop
