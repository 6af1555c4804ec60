#pragma once

#include "core/operator.h"

namespace polyop {

/// A sparse convolution's products, by lists of pairs.
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
           "submanifold: places behind the filter's centre have their mirror's counts, and at the centre every row "
           "feeds its own output"),
  };
  static constexpr Doc kDoc = {
      .summary = "Multiplies the rows of pairs with the filter, and sums them into a sparse convolution's outputs.",
      .semantics =
          "For place f of the filter, of KZ x KY x KX, the first indice_num_per_loc[f] columns are pairs: out[indice_"
          "pairs[1, f, j]] += filters[:, f, :] times features[indice_pairs[0, f, j]]. There are num_act_out outputs, 0 "
          "where nothing feeds them. A pair may come twice. A count that is negative or above P, a row that is not "
          "there, and a num_act_out that is negative or above the number of pairs (with is_subm, of rows) are errors. "
          "Sums are in float, in an order that depends on the instruction set but not on the threads. On a GPU rows "
          "that feed one output at one place are added before they are multiplied.",
      .source = "spconv 2.x `indice_conv`, as autoware_tensorrt_plugins has it; get_indice_pairs makes the pairs",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    if (inputs[0].shape[0] <= INT32_MAX && inputs[2].shape[2] <= INT32_MAX) return Status::Ok();
    return InvalidArgument("'features' has ", inputs[0].shape[0], " rows and 'indice_pairs' ", inputs[2].shape[2],
                           " columns, which must fit 32 bits");
  }
};

}  // namespace polyop
