// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/boxes/score_order.h"
#include "ops/boxes3d/nms3d/nms3d.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes3d/nms3d/nms3d_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/widen-inl.h"
#include "ops/boxes/suppression-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

template <class T>
Status Nms3dCpu(const Nms3d& op, const Context& context, Tensor<const T, 2> boxes, Tensor<const T, 1> scores,
                Pending<int64_t, 1> keep) {
  const int64_t count = scores.dim(0);
  POLYOP_RETURN_IF_ERROR(CheckOrdered(count));
  const Scratch<int64_t> order = context.Allocate<int64_t>(count);
  const Scratch<char> memory = context.Allocate<char>(RotatedBoxes::BytesFor(count));
  const Scratch<float> widened = context.Allocate<float>(std::is_same_v<T, float> ? 0 : count);
  if (!order || !memory || !widened) return Internal("out of memory: scratch for ", count, " boxes");
  SortByDescendingScore(AsFloats(scores.data(), count, widened.data()), order.span());
  const RotatedBoxes sorted = RotatedBoxes::In(memory.data(), count, op.Rule());
  context.ParallelFor(count, GrainFor(50.0), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sorted.Set(i, BevBox(boxes.data() + 7 * order[i], !op.normal));
  });
  const int64_t kept = SuppressGreedily(sorted, count, count, &context);
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(kept, &result));
  for (int64_t k = 0; k < kept; ++k) result[k] = order[sorted.kept_index[k]];
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(Nms3d, Nms3dCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
