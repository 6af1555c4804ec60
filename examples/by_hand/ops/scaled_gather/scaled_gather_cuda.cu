// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda.h"
#include "ops/scaled_gather/scaled_gather.h"

namespace polyop {
namespace {

// An index out of range gives 0.
template <class T>
Status ScaledGatherCuda(const ScaledGather&, const CudaContext& cuda, Tensor<const T, 2> x,
                        Tensor<const int64_t, 1> index, std::optional<Tensor<const T, 1>> scale, Tensor<T, 2> y) {
  const T *from = x.data(), *factors = scale ? scale->data() : nullptr;
  const int64_t* const rows = index.data();
  T* const to = y.data();
  const int64_t num_rows = x.dim(0);
  const Divider columns(x.dim(1));
  return ForEach(cuda, y.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t c;
    const int64_t k = columns.Split(i, &c), row = rows[k];
    const bool inside = row >= 0 && row < num_rows;
    const float factor = factors != nullptr ? ToFloat(factors[k]) : 1.0f;
    to[i] = FromFloat<T>(inside ? ToFloat(from[row * columns.divisor() + c]) * factor : 0.0f);
  });
}

POLYOP_CUDA_KERNELS(ScaledGather, ScaledGatherCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
