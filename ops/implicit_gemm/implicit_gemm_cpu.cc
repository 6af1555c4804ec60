#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/implicit_gemm/implicit_gemm_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/sparse/gathered_product-inl.h"
#include "families/sparse/sparse_values.h"
#include "kernels/cpu/simd.h"
#include "ops/implicit_gemm/implicit_gemm.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The table in 32 bits, checked: -1 is none.
template <class I>
Status CheckTable(const Context& context, const Tensor<const I, 2>& pair_fwd, int64_t rows, int32_t* table) {
  const int64_t count = pair_fwd.size(), grain = GrainFor(0.5);
  const Scratch<bool> wrong = context.Allocate<bool>(Context::NumTasks(count, grain));
  if (!wrong) return Internal("out of memory: ", count, " pairs");
  context.ParallelFor(count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    bool outside = false;  // without a branch: the loop becomes one of vectors
    for (int64_t i = begin; i < end; ++i) {
      const I row = pair_fwd[i];
      outside |= row >= rows;
      table[i] = static_cast<int32_t>(row < 0 ? I{-1} : row);
    }
    wrong[task] = outside;
  });
  for (const bool any : wrong.span()) {
    if (any) return CheckPairTable(pair_fwd.data(), 0, count, rows);
  }
  return Status::Ok();
}

template <class T, class I>
Status Multiply(const ImplicitGemm& op, const Context& context, const Tensor<const T, 2>& features,
                const Tensor<const T, 5>& filters, const Tensor<const I, 2>& pair_fwd,
                const std::optional<Tensor<const T, 1>>& bias, const Tensor<T, 2>& out) {
  const int64_t outputs = out.dim(0), block_rows = SparseBlockRows(out.dim(1));
  const Scratch<int32_t> table = context.Allocate<int32_t>(pair_fwd.size());
  if (!table) return Internal("out of memory: ", pair_fwd.size(), " pairs");
  POLYOP_RETURN_IF_ERROR(CheckTable(context, pair_fwd, features.dim(0), table.data()));
  const auto for_pairs = [&](int64_t f, int64_t block, const auto& add) {
    const int64_t first = block * block_rows, size = std::min(block_rows, outputs - first);
    const int32_t* const row = table.data() + f * outputs + first;
    for (int64_t o = 0; o < size; ++o) {
      if (row[o] >= 0) add(row[o], static_cast<int32_t>(o));
    }
  };
  return GatheredProduct(context, features, filters.data(), pair_fwd.dim(0), bias ? bias->data() : nullptr,
                         op.activation(), for_pairs, out);
}

// Of indices of 32 and of 64 bits: a table of instruction sets takes templates of one argument.
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
POLYOP_CPU_KERNEL(ImplicitGemm, ImplicitGemmF32I32, ImplicitGemmI32<float>);
POLYOP_CPU_KERNEL(ImplicitGemm, ImplicitGemmF16I32, ImplicitGemmI32<Half>);
POLYOP_CPU_KERNEL(ImplicitGemm, ImplicitGemmBF16I32, ImplicitGemmI32<BFloat16>);
POLYOP_CPU_KERNEL(ImplicitGemm, ImplicitGemmF32I64, ImplicitGemmI64<float>);
POLYOP_CPU_KERNEL(ImplicitGemm, ImplicitGemmF16I64, ImplicitGemmI64<Half>);
POLYOP_CPU_KERNEL(ImplicitGemm, ImplicitGemmBF16I64, ImplicitGemmI64<BFloat16>);
}  // namespace polyop
#endif
