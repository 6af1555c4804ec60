// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sorting/repeat_indices/repeat_indices_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/check_indices.h"
#include "kernels/cpu/simd.h"
#include "ops/sorting/repeat_indices/repeat_indices.h"
#include "ops/sorting/repeat_indices/repeat_indices_checks.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Writes the indices [begin, end) to [to, stop). Writes a whole vector for each, so that most need no branch.
template <class I>
void WriteIndices(const I* repeats, int64_t begin, int64_t end, int64_t* to, const int64_t* stop) {
  const hn::ScalableTag<int64_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t k = begin;
  for (; k < end && stop - to >= int64_t{repeats[k]} + lanes; ++k) {
    const auto index = hn::Set(d, k);
    const int64_t count = repeats[k];
    hn::StoreU(index, d, to);
    for (int64_t j = lanes; j < count; j += lanes) hn::StoreU(index, d, to + j);
    to += count;
  }
  for (; k < end; ++k) to = std::fill_n(to, int64_t{repeats[k]}, k);
}

template <class I>
Status RepeatIndicesCpu(const RepeatIndices&, const Context& context, Tensor<const I, 1> repeats,
                        Tensor<const int64_t, 0>, Tensor<int64_t, 1> indices) {
  const int64_t count = repeats.dim(0), total = indices.dim(0);
  POLYOP_RETURN_IF_ERROR(CheckRepeats(context, repeats, total));
  const int64_t grain =
      GrainFor(2 + 0.3 * static_cast<double>(total) / static_cast<double>(std::max<int64_t>(count, 1)));
  const int64_t tasks = Context::NumTasks(count, grain);
  const Scratch<int64_t> before = context.Allocate<int64_t>(tasks + 1);
  if (!before) return Internal("out of memory: ", tasks + 1, " sums");
  context.ParallelFor(count, grain, [&](int64_t task, int64_t begin, int64_t end) {
    before[task + 1] = SumOfRepeats(repeats, begin, end, total);
  });
  before[0] = 0;
  for (int64_t task = 0; task < tasks; ++task) before[task + 1] = std::min(total + 1, before[task] + before[task + 1]);
  if (before[tasks] != total) return WrongTotal(repeats, total);
  context.ParallelFor(count, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    WriteIndices(repeats.data(), begin, end, indices.data() + before[task], indices.data() + before[task + 1]);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(RepeatIndices, RepeatIndicesCpu, int32_t, int64_t);
}  // namespace polyop
#endif
