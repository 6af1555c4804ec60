// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse/implicit_gemm/implicit_gemm_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/type_pairs.h"
#include "ops/sparse/implicit_gemm/implicit_gemm_backward.h"
#include "ops/sparse/implicit_gemm/pair_table-inl.h"
#include "ops/sparse/sparse_conv_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computes the gradients of the arguments of the activation.
template <class T>
void ActivationBackward(const Context& context, const ActivationRule& activation, const T* grad, const T* out,
                        int64_t count, float* to) {
  context.ParallelFor(count, GrainFor(activation.type == SparseActivation::kNone ? 0.2 : 1),
                      [&](int64_t begin, int64_t end) {
                        if (activation.type == SparseActivation::kNone) {
                          return WidenRow(grad + begin, end - begin, to + begin);
                        }
                        for (int64_t i = begin; i < end; ++i) {
                          to[i] = activation.Backward(ToFloat(grad[i]), ToFloat(out[i]));
                        }
                      });
}

template <class Types, class T = typename Types::Real, class I = typename Types::Int>
Status ImplicitGemmBackwardCpu(const ImplicitGemmBackward& op, const Context& context, Tensor<const T, 2> grad_out,
                               Tensor<const T, 2> features, Tensor<const T, 5> filters, Tensor<const I, 2> pair_fwd,
                               Tensor<const I, 2>, Tensor<const I, 1>, std::optional<Tensor<const T, 1>>,
                               Tensor<const T, 2> out, std::optional<Tensor<T, 2>> grad_features,
                               std::optional<Tensor<T, 5>> grad_filters, std::optional<Tensor<T, 1>> grad_bias) {
  const int64_t rows = out.dim(0), outputs = out.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckTable(context, pair_fwd, features.dim(0)));
  const bool in_place = std::is_same_v<T, float> && op.act_type == SparseActivation::kNone;
  const Scratch<float> memory = context.Allocate<float>(in_place ? 0 : out.size());
  if (!memory) return Internal("out of memory: gradients of ", rows, " outputs of ", outputs, " channels");
  const float* grads = reinterpret_cast<const float*>(grad_out.data());
  if (!in_place) {
    ActivationBackward(context, op.activation(), grad_out.data(), out.data(), out.size(), memory.data());
    grads = memory.data();
  }
  if (grad_bias) POLYOP_RETURN_IF_ERROR(ColumnSums(context, grads, rows, outputs, grad_bias->data()));
  const auto visit = [&](int64_t f, const auto& add) HWY_ATTR {
    ForRows(pair_fwd.data() + f * rows, rows, [&](int32_t input, int32_t output) { add(output, input); });
  };
  return SparseConvBackward(context, grads, rows, outputs, features, filters.data(), pair_fwd.dim(0), visit,
                            grad_features, grad_filters);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ImplicitGemmBackward, ImplicitGemmBackwardCpu, F32I32, F32I64, F16I32, F16I64, BF16I32, BF16I64);
}  // namespace polyop
#endif
