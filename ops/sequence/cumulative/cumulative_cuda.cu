// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/line_scan.h"
#include "ops/sequence/cumulative/cumulative.h"
#include "ops/sequence/cumulative/cumulative_values.h"

namespace polyop {
namespace {

template <bool kProduct, class T>
Status Scan(const CudaContext& cuda, const Lines& lines, bool exclusive, const T* from, T* to) {
  using A = Accumulated<T>;
  const int64_t before = !exclusive ? 0 : lines.backwards ? lines.inner : -lines.inner;
  return ScanLines<A>(
      cuda, lines,
      [=] POLYOP_DEVICE(int64_t element, int64_t k) {
        return before != 0 && k == 0 ? kOfNone<kProduct, A> : ToAccumulated(from[element + before]);
      },
      [] POLYOP_DEVICE(A earlier, A later) { return Combined<kProduct>(earlier, later); },
      [=] POLYOP_DEVICE(int64_t element, A running) { to[element] = FromAccumulated<T>(running); });
}

template <class T>
Status CumulativeCuda(const Cumulative& op, const CudaContext& cuda, Tensor<const T, kAnyRank> input,
                      Tensor<T, kAnyRank> output) {
  const ScanExtents e = ScanExtents::Of(op.axis, input.shape());
  const Lines lines{e.outer, e.length, e.inner, op.reverse != 0};
  const bool exclusive = op.exclusive != 0;
  return op.mode == Cumulative::Mode::kProd ? Scan<true>(cuda, lines, exclusive, input.data(), output.data())
                                            : Scan<false>(cuda, lines, exclusive, input.data(), output.data());
}

POLYOP_CUDA_KERNELS(Cumulative, CumulativeCuda, float, double, Half, BFloat16, int32_t, int64_t);

}  // namespace
}  // namespace polyop
