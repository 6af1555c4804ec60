// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/sparse/implicit_gemm/implicit_gemm_backward.h"
#include "ops/sparse/sparse_values.h"

namespace polyop {
namespace {

template <class I>
Status ImplicitGemmBackwardReference(const ImplicitGemmBackward& op, const Context&, Tensor<const double, 2> grad_out,
                                     Tensor<const double, 2> features, Tensor<const double, 5> filters,
                                     Tensor<const I, 2> pair_fwd, Tensor<const I, 2>, Tensor<const I, 1>,
                                     std::optional<Tensor<const double, 1>>, Tensor<const double, 2> out,
                                     std::optional<Tensor<double, 2>> grad_features,
                                     std::optional<Tensor<double, 5>> grad_filters,
                                     std::optional<Tensor<double, 1>> grad_bias) {
  POLYOP_RETURN_IF_ERROR(CheckPairTable(pair_fwd.data(), 0, pair_fwd.size(), features.dim(0)));
  const int64_t channels = features.dim(1), offsets = pair_fwd.dim(0), outputs = pair_fwd.dim(1);
  if (grad_features) std::fill_n(grad_features->data(), grad_features->size(), 0.0);
  if (grad_filters) std::fill_n(grad_filters->data(), grad_filters->size(), 0.0);
  if (grad_bias) std::fill_n(grad_bias->data(), grad_bias->size(), 0.0);
  for (int64_t i = 0; i < out.size(); ++i) {
    const int64_t o = i / out.dim(1), k = i % out.dim(1);
    const double grad = op.activation().Backward(grad_out[i], out[i]);
    if (grad_bias) (*grad_bias)[k] += grad;
    for (int64_t f = 0; channels > 0 && f < offsets; ++f) {
      const int64_t row = pair_fwd[f * outputs + o];
      if (row < 0) continue;
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t weight = (k * offsets + f) * channels + c;
        if (grad_features) (*grad_features)[row * channels + c] += grad * filters[weight];
        if (grad_filters) (*grad_filters)[weight] += grad * features[row * channels + c];
      }
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(ImplicitGemmBackward, ImplicitGemmBackwardReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
