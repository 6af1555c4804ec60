#include <algorithm>

#include "families/boxes/convex_polygons.h"
#include "families/boxes/score_order.h"
#include "ops/nms_quadri/nms_quadri.h"

namespace polyop {
namespace {

// Blocks of candidates are tested together against what was kept before them, then one after the other among
// themselves. Boxes come by falling score; those that stay are moved to the front, with their places in `order`.
int64_t Suppress(const Context& context, ConvexPolygon* boxes, int64_t* order, int64_t count, float threshold) {
  constexpr int64_t kBlock = 256;
  int64_t kept = 0;
  const auto overlaps_any = [&](const ConvexPolygon& box, int64_t first, int64_t last) {
    return std::any_of(boxes + first, boxes + last,
                       [&](const ConvexPolygon& other) { return Overlap(other, box, threshold); });
  };
  for (int64_t block = 0; block < count; block += kBlock) {
    const int64_t size = std::min(kBlock, count - block), before = kept;
    bool suppressed[kBlock] = {};
    context.ParallelFor(size, GrainFor(3.0 * static_cast<double>(before)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) suppressed[i] = overlaps_any(boxes[block + i], 0, before);
    });
    for (int64_t i = 0; i < size; ++i) {
      if (suppressed[i] || overlaps_any(boxes[block + i], before, kept)) continue;
      boxes[kept] = boxes[block + i];
      order[kept++] = order[block + i];
    }
  }
  return kept;
}

Status NmsQuadriCpu(const NmsQuadri& op, const Context& context, Tensor<const float, 2> boxes,
                    Tensor<const float, 1> scores, Pending<int64_t, 1> keep) {
  POLYOP_RETURN_IF_ERROR(CheckOrdered(boxes.dim(0)));
  const Scratch<int64_t> order = context.Allocate<int64_t>(scores.size());
  const Scratch<ConvexPolygon> sorted = context.Allocate<ConvexPolygon>(scores.size());
  if (!order || !sorted) return Internal("out of memory: ", scores.size(), " boxes");
  const int64_t candidates = SortAbove(scores.data(), scores.size(), op.score_threshold, order.data());
  context.ParallelFor(candidates, GrainFor(50.0), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sorted[i] = ConvexPolygon::HullOf<4>(boxes.data() + 8 * order[i]);
  });
  const int64_t kept = Suppress(context, sorted.data(), order.data(), candidates, op.iou_threshold);
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(kept, &result));
  std::copy_n(order.data(), kept, result.data());
  return Status::Ok();
}

POLYOP_PLAIN_CPU_KERNEL(NmsQuadri, NmsQuadriF32, NmsQuadriCpu);

}  // namespace
}  // namespace polyop
