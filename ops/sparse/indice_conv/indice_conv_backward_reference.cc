// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/sparse/indice_conv/indice_conv_backward.h"
#include "ops/sparse/sparse_values.h"

namespace polyop {
namespace {

template <class I>
Status IndiceConvBackwardReference(const IndiceConvBackward& op, const Context&, Tensor<const double, 2> grad_out,
                                   Tensor<const double, 2> features, Tensor<const double, 5> filters,
                                   Tensor<const I, 3> indice_pairs, Tensor<const I, 1> counts,
                                   Tensor<const I, 0> num_act_out, std::optional<Tensor<double, 2>> grad_features,
                                   std::optional<Tensor<double, 5>> grad_filters) {
  const int64_t outputs = grad_out.dim(0), offsets = counts.dim(0), channels = features.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckGradientCount(num_act_out[0], outputs));
  const PairLists<I> lists{indice_pairs.data(), counts.data(), offsets, indice_pairs.dim(2), op.is_subm};
  for (int64_t f = 0; f < offsets; ++f) POLYOP_RETURN_IF_ERROR(lists.Check(f, features.dim(0), outputs));
  if (grad_features) std::fill_n(grad_features->data(), grad_features->size(), 0.0);
  if (grad_filters) std::fill_n(grad_filters->data(), grad_filters->size(), 0.0);
  const auto add = [&](int64_t f, int64_t in, int64_t o) {
    for (int64_t i = 0; i < grad_out.dim(1) * channels; ++i) {
      const int64_t k = i / channels, c = i % channels, weight = (k * offsets + f) * channels + c;
      const double grad = grad_out[o * grad_out.dim(1) + k];
      if (grad_features) (*grad_features)[in * channels + c] += grad * filters[weight];
      if (grad_filters) (*grad_filters)[weight] += grad * features[in * channels + c];
    }
  };
  for (int64_t f = 0; f < offsets; ++f) {
    if (op.is_subm && f == offsets / 2) {
      for (int64_t o = 0; o < outputs; ++o) add(f, o, o);
      continue;
    }
    const int64_t counted = op.is_subm && f > offsets / 2 ? offsets - 1 - f : f;
    for (int64_t j = 0; j < counts[counted]; ++j) {
      const int64_t column = f * indice_pairs.dim(2) + j;
      add(f, indice_pairs[column], indice_pairs[offsets * indice_pairs.dim(2) + column]);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(IndiceConvBackward, IndiceConvBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
