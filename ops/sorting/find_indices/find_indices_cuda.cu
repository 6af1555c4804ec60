// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/prefix_sums.h"
#include "ops/sorting/find_indices/find_indices.h"

namespace polyop {
namespace {

template <class T>
Status FindIndicesCuda(const FindIndices& op, const CudaContext& cuda, Tensor<const T, kAnyRank> x,
                       Pending<int64_t, 2> indices) {
  const int64_t count = x.size();
  Tensor<int64_t, 2> output;
  int64_t* found = nullptr;
  POLYOP_RETURN_IF_ERROR(indices.AllocateUpperBound(count, &output, &found));
  int64_t* const before = cuda.Allocate<int64_t>(count + 1);
  const T* const from = x.data();
  int64_t* const to = output.data();
  const bool nonzero = op.mode == FindIndices::Mode::kNonZero;
  POLYOP_RETURN_IF_ERROR(TiledPrefixSums(
      cuda, count,
      [=] POLYOP_DEVICE(int64_t i) { return int64_t{nonzero ? from[i] != T{0} : i == 0 || from[i] != from[i - 1]}; },
      before));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, 1, [=] POLYOP_DEVICE(int64_t) { *found = before[count]; }));
  const IndexExtents extents(x.shape(), op.dimensions);
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
    if (before[i + 1] == before[i]) return;
    int64_t* const index = to + before[i] * extents.dimensions;
    int64_t rest = i;
    for (int c = extents.dimensions - 1; c > 0; --c) {
      index[c] = rest % extents.extent[c];
      rest /= extents.extent[c];
    }
    index[0] = rest;
  });
}

POLYOP_CUDA_KERNELS(FindIndices, FindIndicesCuda, bool, uint8_t, int32_t, int64_t, float, double);

}  // namespace
}  // namespace polyop
