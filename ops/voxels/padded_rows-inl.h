// SPDX-License-Identifier: Apache-2.0
// Output rows that are partly filled and padded with 0. Compiled once per instruction set; include it from a kernel
// file.
#if defined(POLYOP_OPS_VOXELS_PADDED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_VOXELS_PADDED_ROWS_INL_H_
#undef POLYOP_OPS_VOXELS_PADDED_ROWS_INL_H_
#else
#define POLYOP_OPS_VOXELS_PADDED_ROWS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Writes `count` rows of `row` words each. fill(r, at) writes row r starting at `at` and returns its end. If the
/// output is large, rows are assembled in the L1 cache and streamed.
template <class Word, class Fill>
Status WritePaddedRows(const Context& context, int64_t count, int64_t row, Word* to, const Fill& fill) {
  constexpr int64_t kMaxStreamedBytes = 1 << 15;
  const int64_t bytes = row * static_cast<int64_t>(sizeof(Word));
  const int64_t grain = GrainFor(20 + 0.1 * static_cast<double>(bytes));
  const bool stream = bytes <= kMaxStreamedBytes && ShouldStream(bytes, count);
  const Scratch<Word> rows = context.Allocate<Word>(stream ? Context::NumTasks(count, grain) * row : 0);
  if (!rows) return Internal("out of memory: rows of ", row, " elements");
  context.ParallelFor(count, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    Word* const whole = rows.data() + task * row;
    if (stream) std::fill_n(whole, row, Word{0});
    for (int64_t r = begin; r < end; ++r) {
      if (stream) {
        Word* const filled = fill(r, whole);
        StreamRun(whole, row, to + r * row);
        std::fill(whole, filled, Word{0});
      } else {
        std::fill(fill(r, to + r * row), to + (r + 1) * row, Word{0});
      }
    }
    if (stream) hwy::FlushStream();
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
