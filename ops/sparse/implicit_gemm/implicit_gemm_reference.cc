// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/implicit_gemm/implicit_gemm.h"
#include "ops/sparse/sparse_values.h"

namespace polyop {
namespace {

template <class I>
Status ImplicitGemmReference(const ImplicitGemm& op, const Context&, Tensor<const double, 2> features,
                             Tensor<const double, 5> filters, Tensor<const I, 2> pair_fwd, Tensor<const I, 2>,
                             Tensor<const I, 1>, std::optional<Tensor<const double, 1>> bias, Tensor<double, 2> out) {
  POLYOP_RETURN_IF_ERROR(CheckPairTable(pair_fwd.data(), 0, pair_fwd.size(), features.dim(0)));
  const int64_t channels = features.dim(1), offsets = pair_fwd.dim(0), outputs = pair_fwd.dim(1);
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t k = 0; k < out.dim(1); ++k) {
      double sum = 0;
      for (int64_t f = 0; f < offsets; ++f) {
        const int64_t row = pair_fwd[f * outputs + o];
        if (row < 0) continue;
        for (int64_t c = 0; c < channels; ++c) {
          sum += features[row * channels + c] * filters[(k * offsets + f) * channels + c];
        }
      }
      out[o * out.dim(1) + k] = op.activation()(sum + (bias ? (*bias)[k] : 0));
    }
  }
  return Status::Ok();
}
POLYOP_REFERENCE_KERNELS(ImplicitGemm, ImplicitGemmReference, int32_t, int64_t);

}  // namespace
}  // namespace polyop
