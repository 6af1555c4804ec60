// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse/indice_conv/indice_conv_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/sparse/indice_conv/indice_conv_backward.h"
#include "ops/sparse/sparse_conv_backward-inl.h"
#include "ops/sparse/sparse_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class Types, class T = typename Types::Real, class I = typename Types::Int>
Status IndiceConvBackwardCpu(const IndiceConvBackward& op, const Context& context, Tensor<const T, 2> grad_out,
                             Tensor<const T, 2> features, Tensor<const T, 5> filters, Tensor<const I, 3> indice_pairs,
                             Tensor<const I, 1> counts, Tensor<const I, 0> num_act_out,
                             std::optional<Tensor<T, 2>> grad_features, std::optional<Tensor<T, 5>> grad_filters) {
  const int64_t outputs = grad_out.dim(0);
  POLYOP_RETURN_IF_ERROR(CheckGradientCount(num_act_out[0], outputs));
  const PairLists<I> lists{indice_pairs.data(), counts.data(), counts.dim(0), indice_pairs.dim(2), op.is_subm};
  POLYOP_RETURN_IF_ERROR(lists.CheckAll(context, features.dim(0), outputs));
  const Scratch<float> widened = context.Allocate<float>(std::is_same_v<T, float> ? 0 : grad_out.size());
  if (!widened) return Internal("out of memory: gradients of ", outputs, " outputs");
  const auto visit = [&](int64_t f, const auto& add) {
    for (int64_t o = 0; lists.IsCentre(f) && o < outputs; ++o) add(o, o);
    lists.ForListed(f, [&](int64_t input, int64_t output) { add(output, input); });
  };
  return SparseConvBackward(context, RowsAsFloats(context, grad_out, widened), outputs, grad_out.dim(1), features,
                            filters.data(), lists.offsets, visit, grad_features, grad_filters);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(IndiceConvBackward, IndiceConvBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif
