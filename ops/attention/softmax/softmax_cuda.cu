// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/softmax_lines.h"
#include "ops/attention/softmax/softmax.h"

namespace polyop {
namespace {

template <class T>
Status SoftmaxCuda(const Softmax& op, const CudaContext& cuda, Tensor<const T, kAnyRank> x, Tensor<T, kAnyRank> y) {
  const SoftmaxLines lines(op, x.shape());
  const int64_t length = lines.length, count = lines.outer * lines.inner;
  const Divider inner(lines.inner);
  const T* const source = x.data();
  T* const target = y.data();
  const auto index_of = [=] POLYOP_DEVICE(int64_t line, int64_t i) {
    int64_t within;
    const int64_t outer = inner.Split(line, &within);
    return (outer * length + i) * inner.divisor() + within;
  };
  const auto load = [=] POLYOP_DEVICE(int64_t line, int64_t i) { return ToFloat(source[index_of(line, i)]); };
  const auto store = [=] POLYOP_DEVICE(int64_t line, int64_t i, float value) {
    target[index_of(line, i)] = FromFloat<T>(value);
  };
  const bool contiguous = lines.inner == 1;
  return op.log != 0 ? SoftmaxOfLines<true>(cuda, contiguous, count, length, load, store)
                     : SoftmaxOfLines<false>(cuda, contiguous, count, length, load, store);
}

POLYOP_CUDA_KERNELS(Softmax, SoftmaxCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
