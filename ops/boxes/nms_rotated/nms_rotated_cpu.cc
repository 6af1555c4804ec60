// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/nms_rotated/nms_rotated_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/nms_rotated/nms_rotated.h"
#include "ops/boxes/score_order.h"
#include "ops/boxes/suppression-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Suppresses boxes in each of `sets` = images * classes sets. Writes the kept boxes of set s to order[s * count] and
// following, and their number to kept[s]. Requires: `order` has space for all scores.
Status SuppressSets(const NmsRotated& op, const Context& context, const float* boxes, const float* scores, int64_t sets,
                    int64_t classes, int64_t count, int64_t* order, int64_t* kept) {
  POLYOP_RETURN_IF_ERROR(CheckOrdered(count));
  const int64_t grain = GrainFor(20.0 * static_cast<double>(count));
  const auto suppress = [&](char* memory, int64_t begin, int64_t end) {
    const auto sorted = RotatedBoxes::In(memory, count, {op.iou_threshold});
    for (int64_t set = begin; set < end; ++set) {
      int64_t* const set_order = order + set * count;
      const int64_t candidates = SortAbove(scores + set * count, count, op.score_threshold, set_order);
      const auto set_boxes = [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) sorted.Set(i, boxes + (set / classes * count + set_order[i]) * 5);
      };
      if (sets == 1) {
        context.ParallelFor(candidates, GrainFor(50.0), set_boxes);
      } else {
        set_boxes(0, candidates);
      }
      kept[set] = SuppressGreedily(sorted, candidates, candidates, sets == 1 ? &context : nullptr);
      // In place: kept_index is ascending and kept_index[k] >= k.
      for (int64_t k = 0; k < kept[set]; ++k) set_order[k] = set_order[sorted.kept_index[k]];
    }
  };
  if (context.ParallelForWithScratch<char>(sets, grain, RotatedBoxes::BytesFor(count), suppress)) return Status::Ok();
  return Internal("out of memory: scratch for ", count, " boxes of ", sets, " classes");
}

Status NmsRotatedOfClasses(const NmsRotated& op, const Context& context, Tensor<const float, 3> boxes,
                           Tensor<const float, 3> scores, Pending<int64_t, 2> keep) {
  const int64_t count = boxes.dim(1), classes = scores.dim(1);
  const int64_t sets = count == 0 ? 0 : scores.dim(0) * classes;  // empty shapes may have arbitrary extents
  const Scratch<int64_t> order = context.Allocate<int64_t>(scores.size());
  const Scratch<int64_t> kept = context.Allocate<int64_t>(sets);
  if (!order || !kept) return Internal("out of memory: scratch for ", scores.size(), " scores");
  POLYOP_RETURN_IF_ERROR(
      SuppressSets(op, context, boxes.data(), scores.data(), sets, classes, count, order.data(), kept.data()));
  int64_t rows = 0;
  for (int64_t set = 0; set < sets; ++set) rows += kept[set];
  Tensor<int64_t, 2> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(rows, &result));
  int64_t* row = result.data();
  for (int64_t set = 0; set < sets; ++set) {
    for (int64_t k = 0; k < kept[set]; ++k, row += 3) {
      row[0] = set / classes;
      row[1] = set % classes;
      row[2] = order[set * count + k];
    }
  }
  return Status::Ok();
}

Status NmsRotatedCpu(const NmsRotated& op, const Context& context, Tensor<const float, 2> boxes,
                     Tensor<const float, 1> scores, Pending<int64_t, 1> keep) {
  const Scratch<int64_t> order = context.Allocate<int64_t>(scores.size());
  if (!order) return Internal("out of memory: scratch for ", scores.size(), " scores");
  int64_t kept = 0;
  POLYOP_RETURN_IF_ERROR(
      SuppressSets(op, context, boxes.data(), scores.data(), 1, 1, boxes.dim(0), order.data(), &kept));
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(kept, &result));
  std::copy_n(order.data(), kept, result.data());
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(NmsRotated, NmsRotatedOfClasses);
POLYOP_CPU_KERNEL(NmsRotated, NmsRotatedCpu);
}  // namespace polyop
#endif
