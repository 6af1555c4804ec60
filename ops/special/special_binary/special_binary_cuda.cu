// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/special/special_binary/binary_functions.h"
#include "ops/special/special_binary/special_binary.h"

namespace polyop {
namespace {

template <class T>
Status SpecialBinaryCuda(const SpecialBinary& op, const CudaContext& cuda, Tensor<const T, kAnyRank> a,
                         Tensor<const T, kAnyRank> b, Tensor<T, kAnyRank> y) {
  const T *const first = a.data(), *const second = b.data();
  T* const to = y.data();
  const SpecialBinary what = op;
  return ForEach(cuda, y.size(), [=] POLYOP_DEVICE(int64_t i) { to[i] = special::Binary(what, first[i], second[i]); });
}

POLYOP_CUDA_KERNELS(SpecialBinary, SpecialBinaryCuda, float, double);

}  // namespace
}  // namespace polyop
