// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/special/numbers.h"
#include "ops/special/special_unary/call_unary.h"
#include "ops/special/special_unary/special_unary.h"

namespace polyop {
namespace {

POLYOP_DEFINE_CALL_UNARY(POLYOP_HD, CallUnary)

// A template instead of a lambda, because nvcc allows no device code inside of a generic lambda.
template <int kCode, class T>
Status ComputeUnary(const CudaContext& cuda, const T* from, int64_t count, T* to) {
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) {
    to[i] = static_cast<T>(CallUnary<kCode>(static_cast<double>(from[i])));
  });
}

template <class T>
Status SpecialUnaryCuda(const SpecialUnary& op, const CudaContext& cuda, Tensor<const T, kAnyRank> x,
                        Tensor<T, kAnyRank> y) {
  return WithUnaryFunction(op.Code(), [&](auto function) {
    return ComputeUnary<decltype(function)::kCode>(cuda, x.data(), x.size(), y.data());
  });
}

POLYOP_CUDA_KERNELS(SpecialUnary, SpecialUnaryCuda, float, double);

}  // namespace
}  // namespace polyop
