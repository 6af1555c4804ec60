// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/scaled_gather/scaled_gather_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/scaled_gather/scaled_gather.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status ScaledGatherCpu(const ScaledGather&, const Context& context, Tensor<const T, 2> x,
                       Tensor<const int64_t, 1> index, std::optional<Tensor<const T, 1>> scale, Tensor<T, 2> y) {
  const int64_t rows = x.dim(0), columns = x.dim(1);
  for (int64_t k = 0; k < index.size(); ++k) {
    if (index[k] < 0 || index[k] >= rows) {
      return InvalidArgument("'index'[", k, "]: expected an index in [0, ", rows, "), got ", index[k]);
    }
  }
  context.ParallelFor(index.size(), GrainFor(0.3 * static_cast<double>(columns)), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const float factor = scale ? ToFloat((*scale)[k]) : 1.0f;
      const T* const from = x.data() + index[k] * columns;
      for (int64_t c = 0; c < columns; ++c) y[k * columns + c] = FromFloat<T>(ToFloat(from[c]) * factor);
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(ScaledGather, ScaledGatherCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
