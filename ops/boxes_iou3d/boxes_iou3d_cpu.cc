#include "families/boxes/boxes_of_space.h"
#include "ops/boxes_iou3d/boxes_iou3d.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes_iou3d/boxes_iou3d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/box_pairs-inl.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status BoxesIou3dCpu(const BoxesIou3d& op, const Context& context, Tensor<const T, 2> boxes_a,
                     Tensor<const T, 2> boxes_b, Tensor<T, 2> overlap) {
  const auto boxes_of = [](const Tensor<const T, 2>& rows) {
    return [data = rows.data()](int64_t i) { return BoxOfSpace::Of(data + 7 * i); };
  };
  return MeasurePairs<BoxOfSpace>(
      context, 1, boxes_a.dim(0), boxes_b.dim(0), boxes_of(boxes_a), boxes_of(boxes_b),
      [](const BoxOfSpace& box) { return box.above; },
      [&](const BoxOfSpace& a, const BoxOfSpace& b) { return op.Measure(a, b); }, overlap.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(BoxesIou3d, BoxesIou3dF32, BoxesIou3dCpu<float>);
POLYOP_CPU_KERNEL(BoxesIou3d, BoxesIou3dF16, BoxesIou3dCpu<Half>);
POLYOP_CPU_KERNEL(BoxesIou3d, BoxesIou3dBF16, BoxesIou3dCpu<BFloat16>);
}  // namespace polyop
#endif
