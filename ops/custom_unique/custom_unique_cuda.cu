#include "kernels/cuda/sort_integers.h"
#include "kernels/cuda/sorted_runs.h"
#include "ops/custom_unique/custom_unique.h"

namespace polyop {
namespace {

template <class I>
Status CustomUniqueCuda(const CustomUnique&, const CudaContext& cuda, Tensor<const I, 1> x, Pending<I, 1> unique,
                        Tensor<int64_t, 1> inverse, Pending<int64_t, 1> counts, Tensor<int64_t, 0> num) {
  const int64_t count = x.dim(0);
  Tensor<I, 1> made;
  Tensor<int64_t, 1> sizes;
  int64_t *of_unique, *of_counts;
  POLYOP_RETURN_IF_ERROR(unique.AllocateMost(count, &made, &of_unique));
  POLYOP_RETURN_IF_ERROR(counts.AllocateMost(count, &sizes, &of_counts));
  SortPairs sort;
  POLYOP_RETURN_IF_ERROR(SortIntegers(cuda, x.data(), count, &sort));
  const uint64_t* const keys = sort.keys;
  const int32_t* const places = sort.values;
  SortedRuns runs;
  POLYOP_RETURN_IF_ERROR(
      SortedRuns::Find(cuda, count, [=] POLYOP_HD(int64_t i) { return keys[i] != keys[i - 1]; }, &runs));
  const I* const from = x.data();
  I* const to = made.data();
  int64_t *const size_of = sizes.data(), *const run_of = inverse.data(), *const total = num.data();
  POLYOP_RETURN_IF_ERROR(
      ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) { *of_unique = *of_counts = *total = runs.count(); }));
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
    run_of[places[i]] = runs.RunOf(i);
    if (i >= runs.count()) return;
    to[i] = from[places[runs.starts[i]]];
    size_of[i] = runs.SizeOf(i);
  });
}

POLYOP_CUDA_KERNEL(CustomUnique, CustomUniqueI32, CustomUniqueCuda<int32_t>);
POLYOP_CUDA_KERNEL(CustomUnique, CustomUniqueI64, CustomUniqueCuda<int64_t>);

}  // namespace
}  // namespace polyop
