// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// The matrix products of a sparse convolution, given lists of (input, output) pairs.
struct IndiceConv {
  bool is_subm = false;

  static constexpr const char* kName = "indice_conv";
  static constexpr Signature kSignature =
      "features: T[N, C], filters: T[K, KZ, KY, KX, C], indice_pairs: I[2, KZ * KY * KX, P], "
      "indice_num_per_loc: I[KZ * KY * KX], num_act_out: I[] -> "
      "out: T[O<=is_subm * N + (1 - is_subm) * KZ * KY * KX * P, K]";
  static constexpr NodeName kNodes[] = {"autoware::IndiceConv", "polyop::IndiceConv"};
  static constexpr std::tuple kAttributes = {
      Attr("is_subm", &IndiceConv::is_subm,
           "submanifold: positions after the centre of the filter have the counts of their mirror images, and at the "
           "centre every row contributes to its own output"),
  };
  static constexpr Doc kDoc = {
      .summary = "Computes a sparse convolution from lists of (input row, output row) pairs.",
      .semantics = R"(For position f of the KZ x KY x KX positions of the filter, the first indice_num_per_loc[f]
          columns are pairs: out[indice_pairs[1, f, j]] += filters[:, f, :] times features[indice_pairs[0, f, j]].
          There are num_act_out outputs; an output without inputs is 0. A pair may occur more than once. It is an
          error if a count is negative or greater than P, if a row index is out of range, or if num_act_out is
          negative or greater than the number of pairs (with is_subm: of rows).

          Sums are accumulated in float, in an order that depends on the instruction set but not on the number of
          threads. On a GPU, rows that contribute to the same output at the same filter position are added before
          the multiplication.)",
      .source = "spconv 2.x `indice_conv`, as in autoware_tensorrt_plugins; get_indice_pairs computes the pairs",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs[0].shape[0] <= INT32_MAX && inputs[2].shape[2] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'features' and 'indice_pairs': expected at most ", INT32_MAX, " rows and columns, got ",
                           inputs[0].shape[0], " and ", inputs[2].shape[2]);
  }
};

}  // namespace polyop
