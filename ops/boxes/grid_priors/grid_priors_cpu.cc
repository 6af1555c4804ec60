// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/grid_priors/grid_priors_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/grid_priors/grid_priors.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Computed in fp64, so that the product does not overflow for a large stride.
HWY_INLINE float Shift(int64_t cell, int64_t stride) {
  return static_cast<float>(static_cast<double>(cell) * static_cast<double>(stride));
}

template <class T>
Status GridPriorsCpu(const GridPriors& op, const Context& context, Tensor<const T, 2> base, AnyTensor height,
                     AnyTensor width, Tensor<T, 2> priors) {
  const int64_t anchors = base.dim(0), columns = width.shape[0], cells = height.shape[0] * columns;
  context.ParallelFor(cells, GrainFor(static_cast<double>(anchors)), [&](int64_t begin, int64_t end) HWY_ATTR {
    const hn::FixedTag<float, 4> d;
    T* out = priors.data() + begin * anchors * 4;
    for (int64_t cell = begin; cell < end; ++cell) {
      const float x = Shift(cell % columns, op.stride_w), y = Shift(cell / columns, op.stride_h);
      const auto shift = hn::Dup128VecFromValues(d, x, y, x, y);
      for (int64_t a = 0; a < anchors; ++a, out += 4) {
        StoreFloat(hn::Add(LoadFloat(d, base.data() + a * 4), shift), d, out);
      }
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
POLYOP_CPU_KERNELS(GridPriors, GridPriorsCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
