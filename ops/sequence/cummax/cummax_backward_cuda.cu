// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/atomic_add.h"
#include "kernels/cuda/line_scan.h"
#include "ops/sequence/cummax/cummax_backward.h"

namespace polyop {
namespace {

// Consecutive elements of a line: the index of the last one, and the sum of those at the end that have this index.
struct IndexRun {
  int64_t index;
  float sum;
  bool whole;  // all of the elements have the index

  // Returns the run of these elements and those after them.
  POLYOP_HD IndexRun Then(const IndexRun& later) const {
    const bool joined = later.whole && index == later.index;
    return {later.index, joined ? sum + later.sum : later.sum, joined && whole};
  }
};

// The elements that an element is the extremum of are consecutive, so a scan sums each run. Only the last element of a
// run adds its sum: once per index, if the indices are those of the operator. An index out of range, which is an error
// on the CPU, is ignored.
template <class T>
Status CumMaxBackwardCuda(const CumMaxBackward& op, const CudaContext& cuda, Tensor<const T, kAnyRank> grad_values,
                          Tensor<const T, kAnyRank> input, Tensor<const int64_t, kAnyRank> indices,
                          Tensor<T, kAnyRank> grad_input) {
  const ScanExtents extents = ScanExtents::Of(op.dim, input.shape());
  const T* const grads = grad_values.data();
  const int64_t* const index = indices.data();
  return SumAtomically(cuda, extents.outer, extents.length, extents.inner, grad_input.data(),
                       [&](const ChannelSums& sums) {
                         const Divider by_inner(extents.inner), by_length(extents.length);
                         return ScanLines<IndexRun>(
                             cuda, Lines{extents.outer, extents.length, extents.inner},
                             [=] POLYOP_DEVICE(int64_t element, int64_t) {
                               return IndexRun{index[element], ToFloat(grads[element]), true};
                             },
                             [] POLYOP_DEVICE(const IndexRun& a, const IndexRun& b) { return a.Then(b); },
                             [=] POLYOP_DEVICE(int64_t element, const IndexRun& run) {
                               int64_t i, k;
                               const int64_t o = by_length.Split(by_inner.Split(element, &i), &k);
                               const bool last = k == by_length.divisor() - 1;
                               if (!last && index[element + by_inner.divisor()] == run.index) return;
                               if (sums.Has(run.index)) AtomicAdd(sums.Plane(o, run.index) + i, run.sum);
                             });
                       });
}

POLYOP_ATOMIC_CUDA_KERNELS(CumMaxBackward, CumMaxBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
