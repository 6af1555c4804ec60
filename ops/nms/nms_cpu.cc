#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nms/nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/boxes-inl.h"
#include "core/score_order.h"
#include "core/simd.h"
#include "ops/nms/nms.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Blocks of candidates are tested against all kept boxes in parallel, then among themselves in order.
constexpr int64_t kBlock = 256;

Status NmsCpu(const Nms& op, const Context& context, Tensor<const float, 2> boxes, Tensor<const float, 1> scores,
              Pending<int64_t, 1> keep) {
  const int64_t count = boxes.dim(0);
  const Scratch<int64_t> order = context.Allocate<int64_t>(count);
  const Scratch<int64_t> kept = context.Allocate<int64_t>(count);
  const Scratch<float> memory = context.Allocate<float>(2 * BoxArrays::FloatsFor(count));
  if (!order || !kept || !memory) return Internal("out of memory: scratch for ", count, " boxes");
  SortByFallingScore(scores.data(), order.span());

  const BoxArrays sorted = BoxArrays::In(memory.data(), count);
  const BoxArrays kept_boxes = BoxArrays::In(memory.data() + BoxArrays::FloatsFor(count), count);
  const float offset = static_cast<float>(op.offset), threshold = op.iou_threshold;
  for (int64_t i = 0; i < count; ++i) sorted.Set(i, boxes.data() + 4 * order[i], offset);

  int64_t num_kept = 0;
  for (int64_t block = 0; block < count; block += kBlock) {
    const int64_t size = std::min(kBlock, count - block), before = num_kept;
    bool suppressed[kBlock] = {};
    const auto test = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        suppressed[i] = OverlapsAny(sorted, block + i, kept_boxes, 0, before, offset, threshold);
      }
    };
    context.ParallelFor(size, GrainFor(0.3 * static_cast<double>(before)), test);
    for (int64_t i = 0; i < size; ++i) {
      if (suppressed[i] || OverlapsAny(sorted, block + i, kept_boxes, before, num_kept, offset, threshold)) continue;
      kept[num_kept] = order[block + i];
      kept_boxes.Copy(num_kept++, sorted, block + i);
    }
  }
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(num_kept, &result));
  std::copy_n(kept.data(), num_kept, result.data());
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(Nms, NmsF32, NmsCpu);
}  // namespace polyop
#endif
