// SPDX-License-Identifier: Apache-2.0
#include "core/order_keys.h"
#include "kernels/cpu/radix_sort.h"
#include "ops/sorting/custom_unique/custom_unique.h"

namespace polyop {
namespace {

// A counting sort has nothing to vectorise, so this file is compiled once and not for every instruction set.

constexpr int64_t kGrain = 1 << 14;

template <class I>
Status CustomUniqueCpu(const CustomUnique&, const Context& context, Tensor<const I, 1> x, Pending<I, 1> unique,
                       Tensor<int64_t, 1> inverse, Pending<int64_t, 1> counts, Tensor<int64_t, 0> num) {
  const int64_t count = x.dim(0), tasks = Context::NumTasks(count, kGrain);
  RadixSort sort(context, count);
  const Scratch<int64_t> runs_before = context.Allocate<int64_t>(tasks + 1);
  if (!sort || !runs_before) return Internal("out of memory: ", count, " integers to sort");
  POLYOP_RETURN_IF_ERROR(sort.SortIndices(count, [&](int64_t i) { return OrderKeyOf(int64_t{x[i]}); }));
  const uint64_t* const keys = sort.keys();
  const auto is_new = [&](int64_t i) { return i == 0 || keys[i] != keys[i - 1]; };
  context.ParallelFor(count, kGrain, [&](int64_t task, int64_t begin, int64_t end) {
    int64_t runs = 0;
    for (int64_t i = begin; i < end; ++i) runs += is_new(i);
    runs_before[task + 1] = runs;
  });
  runs_before[0] = 0;
  for (int64_t task = 0; task < tasks; ++task) runs_before[task + 1] += runs_before[task];
  Tensor<I, 1> values;
  Tensor<int64_t, 1> sizes;
  POLYOP_RETURN_IF_ERROR(unique.Allocate(runs_before[tasks], &values));
  POLYOP_RETURN_IF_ERROR(counts.Allocate(runs_before[tasks], &sizes));
  num[0] = runs_before[tasks];
  // `sizes` first holds the start of each run, then its length.
  context.ParallelFor(count, kGrain, [&](int64_t task, int64_t begin, int64_t end) {
    int64_t run = runs_before[task] - 1;
    for (int64_t i = begin; i < end; ++i) {
      if (is_new(i)) {
        values[++run] = static_cast<I>(IntegerOfKey(keys[i]));
        sizes[run] = i;
      }
      inverse[sort.values()[i]] = run;
    }
  });
  for (int64_t run = 0; run < num[0]; ++run) sizes[run] = (run + 1 < num[0] ? sizes[run + 1] : count) - sizes[run];
  return Status::Ok();
}
POLYOP_PLAIN_CPU_KERNELS(CustomUnique, CustomUniqueCpu, int32_t, int64_t);

}  // namespace
}  // namespace polyop
