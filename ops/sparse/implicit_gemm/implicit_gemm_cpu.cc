// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse/implicit_gemm/implicit_gemm_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/sparse/gathered_product-inl.h"
#include "ops/sparse/implicit_gemm/implicit_gemm.h"
#include "ops/sparse/implicit_gemm/pair_table-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T, class I>
Status Multiply(const ImplicitGemm& op, const Context& context, const Tensor<const T, 2>& features,
                const Tensor<const T, 5>& filters, const Tensor<const I, 2>& pair_fwd,
                const std::optional<Tensor<const T, 1>>& bias, const Tensor<T, 2>& out) {
  const int64_t outputs = out.dim(0), block_rows = SparseBlockRows(out.dim(1));
  POLYOP_RETURN_IF_ERROR(CheckTable(context, pair_fwd, features.dim(0)));
  const auto for_pairs = [&](int64_t f, int64_t block, const auto& add) HWY_ATTR {
    const int64_t first = block * block_rows;
    ForRows(pair_fwd.data() + f * outputs + first, std::min(block_rows, outputs - first), add);
  };
  return GatheredProduct(context, features, filters.data(), pair_fwd.dim(0), bias ? bias->data() : nullptr,
                         op.activation(), for_pairs, out);
}

// Separate entry points for 32-bit and 64-bit indices, because a dispatch table takes templates of one argument.
template <class T>
Status ImplicitGemmI32(const ImplicitGemm& op, const Context& context, Tensor<const T, 2> features,
                       Tensor<const T, 5> filters, Tensor<const int32_t, 2> pair_fwd, Tensor<const int32_t, 2>,
                       Tensor<const int32_t, 1>, std::optional<Tensor<const T, 1>> bias, Tensor<T, 2> out) {
  return Multiply(op, context, features, filters, pair_fwd, bias, out);
}
template <class T>
Status ImplicitGemmI64(const ImplicitGemm& op, const Context& context, Tensor<const T, 2> features,
                       Tensor<const T, 5> filters, Tensor<const int64_t, 2> pair_fwd, Tensor<const int64_t, 2>,
                       Tensor<const int64_t, 1>, std::optional<Tensor<const T, 1>> bias, Tensor<T, 2> out) {
  return Multiply(op, context, features, filters, pair_fwd, bias, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ImplicitGemm, ImplicitGemmI32, float, Half, BFloat16);
POLYOP_CPU_KERNELS(ImplicitGemm, ImplicitGemmI64, float, Half, BFloat16);
}  // namespace polyop
#endif
