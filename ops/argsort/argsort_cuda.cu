#include "kernels/cuda/sort_integers.h"
#include "ops/argsort/argsort.h"

namespace polyop {
namespace {

template <class I>
Status ArgsortCuda(const Argsort&, const CudaContext& cuda, Tensor<const I, 1> x, Tensor<int64_t, 1> order) {
  SortPairs sort;
  POLYOP_RETURN_IF_ERROR(SortIntegers(cuda, x.data(), x.dim(0), &sort));
  const int32_t* const sorted = sort.values;
  int64_t* const to = order.data();
  return ForEach(cuda, x.dim(0), [=] POLYOP_DEVICE(int64_t i) { to[i] = sorted[i]; });
}

POLYOP_CUDA_KERNELS(Argsort, ArgsortCuda, int32_t, int64_t);

}  // namespace
}  // namespace polyop
