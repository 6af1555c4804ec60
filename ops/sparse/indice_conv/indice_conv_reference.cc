// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/sparse/indice_conv/indice_conv.h"
#include "ops/sparse/sparse_values.h"

namespace polyop {
namespace {

template <class I>
Status IndiceConvReference(const IndiceConv& op, const Context&, Tensor<const double, 2> features,
                           Tensor<const double, 5> filters, Tensor<const I, 3> indice_pairs, Tensor<const I, 1> counts,
                           Tensor<const I, 0> num_act_out, Pending<double, 2> pending) {
  const int64_t outputs = num_act_out[0], offsets = counts.dim(0), channels = features.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckOutputCount(outputs, pending.max()));
  const PairLists<I> lists{indice_pairs.data(), counts.data(), offsets, indice_pairs.dim(2), op.is_subm};
  for (int64_t f = 0; f < offsets; ++f) POLYOP_RETURN_IF_ERROR(lists.Check(f, features.dim(0), outputs));
  Tensor<double, 2> out;
  POLYOP_RETURN_IF_ERROR(pending.Allocate(outputs, &out));
  std::fill_n(out.data(), out.size(), 0.0);
  const auto multiply = [&](int64_t f, int64_t in, int64_t o) {
    for (int64_t k = 0; k < out.dim(1); ++k) {
      for (int64_t c = 0; c < channels; ++c) {
        out[o * out.dim(1) + k] += features[in * channels + c] * filters[(k * offsets + f) * channels + c];
      }
    }
  };
  for (int64_t f = 0; f < offsets; ++f) {
    if (op.is_subm && f == offsets / 2) {
      for (int64_t o = 0; o < outputs; ++o) multiply(f, o, o);
      continue;
    }
    const int64_t counted = op.is_subm && f > offsets / 2 ? offsets - 1 - f : f;
    for (int64_t j = 0; j < counts[counted]; ++j) {
      const int64_t column = f * indice_pairs.dim(2) + j;
      multiply(f, indice_pairs[column], indice_pairs[offsets * indice_pairs.dim(2) + column]);
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(IndiceConv, IndiceConvReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
