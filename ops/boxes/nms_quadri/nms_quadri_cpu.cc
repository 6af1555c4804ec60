// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/boxes/convex_polygons.h"
#include "ops/boxes/nms_quadri/nms_quadri.h"
#include "ops/boxes/score_order.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/nms_quadri/nms_quadri_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/suppression-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The arrays hold the axis-aligned bounding boxes of the quadrilaterals.
struct Quadrilaterals : SortedBoxes {
  static constexpr double kNanosecondsPerPair = 1;
  ConvexPolygon* hulls;  // sorted
  float threshold;

  static int64_t BytesFor(int64_t capacity) {
    return static_cast<int64_t>(sizeof(ConvexPolygon)) * capacity + SortedBoxes::BytesFor(capacity);
  }
  /// Requires: `memory` has BytesFor(capacity) bytes and is aligned to 8 bytes.
  static Quadrilaterals In(void* memory, int64_t capacity, float threshold) {
    auto* const hulls = static_cast<ConvexPolygon*>(memory);
    return {SortedBoxes::In(hulls + capacity, capacity, 0), hulls, threshold};
  }
  void Set(int64_t i, const float* row) const {
    hulls[i] = ConvexPolygon::HullOf<4>(row);
    RotatedBox bounds = hulls[i].Bounds();
    if (hulls[i].area == 0) bounds.x = bounds.y = NAN;  // overlaps nothing
    SetBounds(sorted, i, bounds);
  }
  bool Overlaps(int64_t candidate, const KeptSubset& among) const {
    return AnySuspectIn<true>(candidate, among, threshold,
                              [&](int64_t k) { return Overlap(hulls[kept_index[k]], hulls[candidate], threshold); });
  }
};

Status NmsQuadriCpu(const NmsQuadri& op, const Context& context, Tensor<const float, 2> boxes,
                    Tensor<const float, 1> scores, Pending<int64_t, 1> keep) {
  const int64_t count = scores.size();
  POLYOP_RETURN_IF_ERROR(CheckOrdered(count));
  const Scratch<int64_t> order = context.Allocate<int64_t>(count);
  const Scratch<char> memory = context.Allocate<char>(Quadrilaterals::BytesFor(count));
  if (!order || !memory) return Internal("out of memory: scratch for ", count, " boxes");
  const int64_t candidates = SortAbove(scores.data(), count, op.score_threshold, order.data());
  const Quadrilaterals sorted = Quadrilaterals::In(memory.data(), count, op.iou_threshold);
  context.ParallelFor(candidates, GrainFor(150.0), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sorted.Set(i, boxes.data() + 8 * order[i]);
  });
  const int64_t kept = SuppressGreedily(sorted, candidates, candidates, &context);
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
POLYOP_CPU_KERNEL(NmsQuadri, NmsQuadriCpu);
}  // namespace polyop
#endif
