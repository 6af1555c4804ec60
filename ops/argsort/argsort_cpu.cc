#include "kernels/cpu/radix_sort.h"
#include "ops/argsort/argsort.h"

namespace polyop {
namespace {

// A counting sort has nothing to vectorise, so this file is compiled once and not for every instruction set.

template <class I>
Status ArgsortCpu(const Argsort&, const Context& context, Tensor<const I, 1> x, Tensor<int64_t, 1> order) {
  const int64_t count = x.dim(0);
  constexpr int64_t kGrain = 1 << 15;
  RadixSort sort(context, count);
  if (!sort) return Internal("out of memory: ", count, " integers to sort");
  context.ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      sort.keys()[i] = SortableKey(x[i]);
      sort.values()[i] = static_cast<int32_t>(i);
    }
  });
  POLYOP_RETURN_IF_ERROR(sort.Sort(count));
  context.ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) order[i] = sort.values()[i];
  });
  return Status::Ok();
}
POLYOP_PLAIN_CPU_KERNELS(Argsort, ArgsortCpu, int32_t, int64_t);

}  // namespace
}  // namespace polyop
