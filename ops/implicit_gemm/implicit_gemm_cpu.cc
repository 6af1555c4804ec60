#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/implicit_gemm/implicit_gemm_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/sparse/gathered_product-inl.h"
#include "families/sparse/sparse_values.h"
#include "kernels/cpu/mask_bits-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/implicit_gemm/implicit_gemm.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Checks that every entry of the table is a row of the features or negative.
template <class I>
Status CheckTable(const Context& context, const Tensor<const I, 2>& pair_fwd, int64_t rows) {
  const int64_t count = pair_fwd.size(), grain = GrainFor(0.5);
  const Scratch<bool> invalid = context.Allocate<bool>(Context::NumTasks(count, grain));
  if (!invalid) return Internal("out of memory: ", count, " pairs");
  context.ParallelFor(count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    bool outside = false;  // branch-free, so that the loop is vectorized
    for (int64_t i = begin; i < end; ++i) outside |= pair_fwd[i] >= static_cast<I>(rows);
    invalid[task] = outside;
  });
  for (const bool any : invalid.span()) {
    if (any) return CheckPairTable(pair_fwd.data(), 0, count, rows);
  }
  return Status::Ok();
}

// Calls add(row, o) for the non-negative rows among `count` rows. Most are negative.
template <class I, class Add>
HWY_INLINE void ForRows(const I* rows, int64_t count, const Add& add) {
  const hn::ScalableTag<I> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t o = 0;
  for (; o + lanes <= count; o += lanes) {
    const auto valid = hn::Ge(hn::LoadU(d, rows + o), hn::Zero(d));
    if (hn::AllFalse(d, valid)) continue;
    for (uint64_t bits = BitsOf(d, valid); bits != 0; bits &= bits - 1) {
      const int64_t lane = std::countr_zero(bits);
      add(static_cast<int32_t>(rows[o + lane]), static_cast<int32_t>(o + lane));
    }
  }
  for (; o < count; ++o) {
    if (rows[o] >= 0) add(static_cast<int32_t>(rows[o]), static_cast<int32_t>(o));
  }
}

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
