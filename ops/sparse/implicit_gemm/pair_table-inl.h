// SPDX-License-Identifier: Apache-2.0
// The table of the input rows of each output. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_SPARSE_IMPLICIT_GEMM_PAIR_TABLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SPARSE_IMPLICIT_GEMM_PAIR_TABLE_INL_H_
#undef POLYOP_OPS_SPARSE_IMPLICIT_GEMM_PAIR_TABLE_INL_H_
#else
#define POLYOP_OPS_SPARSE_IMPLICIT_GEMM_PAIR_TABLE_INL_H_
#endif

#include <bit>

#include "kernels/cpu/mask_bits-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/sparse/sparse_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Checks that every entry of the table is a row of the features or negative.
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

/// Calls add(row, o) for the non-negative rows among `count` rows. Most are negative.
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
