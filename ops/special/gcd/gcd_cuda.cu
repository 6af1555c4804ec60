// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/special/gcd/gcd.h"

namespace polyop {
namespace {

template <class T>
Status GcdCuda(const Gcd&, const CudaContext& cuda, Tensor<const T, kAnyRank> a, Tensor<const T, kAnyRank> b,
               Tensor<T, kAnyRank> y) {
  const T *const first = a.data(), *const second = b.data();
  T* const to = y.data();
  return ForEach(cuda, y.size(), [=] POLYOP_DEVICE(int64_t i) {
    auto large = Magnitude(first[i]), small = Magnitude(second[i]);
    while (small != 0) {
      const auto rest = static_cast<decltype(small)>(large % small);
      large = small;
      small = rest;
    }
    to[i] = static_cast<T>(large);
  });
}

POLYOP_CUDA_KERNELS(Gcd, GcdCuda, int8_t, uint8_t, int16_t, int32_t, int64_t);

}  // namespace
}  // namespace polyop
