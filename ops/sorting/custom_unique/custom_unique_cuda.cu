// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sort_rows.h"
#include "kernels/cuda/sorted_runs.h"
#include "ops/sorting/custom_unique/custom_unique.h"

namespace polyop {
namespace {

template <class I>
Status CustomUniqueCuda(const CustomUnique&, const CudaContext& cuda, Tensor<const I, 1> x, Pending<I, 1> unique,
                        Tensor<int64_t, 1> inverse, Pending<int64_t, 1> counts, Tensor<int64_t, 0> num) {
  const int64_t count = x.dim(0);
  Tensor<I, 1> values;
  Tensor<int64_t, 1> sizes;
  int64_t *unique_count, *counts_count;
  POLYOP_RETURN_IF_ERROR(unique.AllocateUpperBound(count, &values, &unique_count));
  POLYOP_RETURN_IF_ERROR(counts.AllocateUpperBound(count, &sizes, &counts_count));
  SortPairs sort;
  POLYOP_RETURN_IF_ERROR(SortRows(cuda, x.data(), count, count, false, &sort));
  const uint64_t* const keys = sort.keys;
  const int32_t* const positions = sort.values;
  SortedRuns runs;
  POLYOP_RETURN_IF_ERROR(
      SortedRuns::Find(cuda, count, [=] POLYOP_DEVICE(int64_t i) { return keys[i] != keys[i - 1]; }, &runs));
  const I* const from = x.data();
  I* const to = values.data();
  int64_t *const size_of = sizes.data(), *const run_of = inverse.data(), *const total = num.data();
  POLYOP_RETURN_IF_ERROR(
      ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) { *unique_count = *counts_count = *total = runs.count(); }));
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
    run_of[positions[i]] = runs.RunOf(i);
    if (i >= runs.count()) return;
    to[i] = from[positions[runs.starts[i]]];
    size_of[i] = runs.SizeOf(i);
  });
}

POLYOP_CUDA_KERNELS(CustomUnique, CustomUniqueCuda, int32_t, int64_t);

}  // namespace
}  // namespace polyop
