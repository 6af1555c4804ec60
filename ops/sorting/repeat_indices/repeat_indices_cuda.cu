// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/prefix_sums.h"
#include "ops/sorting/repeat_indices/repeat_indices.h"

namespace polyop {
namespace {

template <class I>
Status RepeatIndicesCuda(const RepeatIndices&, const CudaContext& cuda, Tensor<const I, 1> repeats,
                         Tensor<const int64_t, 0>, Tensor<int64_t, 1> indices) {
  const int64_t count = repeats.dim(0), total = indices.dim(0);
  int64_t* const before = cuda.Allocate<int64_t>(count + 1);
  const I* const from = repeats.data();
  int64_t* const to = indices.data();
  // An element out of range counts as 0 or as `total`, so that the sums neither decrease nor overflow early.
  POLYOP_RETURN_IF_ERROR(TiledPrefixSums(
      cuda, count,
      [=] POLYOP_DEVICE(int64_t k) {
        const int64_t times = from[k];
        return times < 0 ? int64_t{0} : times < total ? times : total;
      },
      before));
  return ForEach(cuda, total, [=] POLYOP_DEVICE(int64_t i) {
    int64_t first = 0, last = count;  // the index whose end is the first one after i
    while (first < last) {
      const int64_t middle = (first + last) / 2;
      if (before[middle + 1] > i) {
        last = middle;
      } else {
        first = middle + 1;
      }
    }
    to[i] = first < count ? first : -1;
  });
}

POLYOP_CUDA_KERNELS(RepeatIndices, RepeatIndicesCuda, int32_t, int64_t);

}  // namespace
}  // namespace polyop
