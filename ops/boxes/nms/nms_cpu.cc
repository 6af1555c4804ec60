// SPDX-License-Identifier: Apache-2.0
// Boxes are copied in the order of descending scores, to one array for each coordinate: the lanes of a vector compare a
// candidate with as many kept boxes. Candidates are tested in blocks: in parallel against the boxes that were kept
// before the block, then one after the other against those of the block (SuppressGreedily in suppression-inl.h).
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/nms/nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/nms/nms.h"
#include "ops/boxes/score_order.h"
#include "ops/boxes/suppression-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

void SetBox(const UprightBoxes& boxes, int64_t i, const float* box, bool center_point_box) {
  if (!center_point_box) return boxes.Set(i, box);
  const float w = box[2] / 2, h = box[3] / 2;
  const float corners[4] = {box[0] - w, box[1] - h, box[0] + w, box[1] + h};
  boxes.Set(i, corners);
}

Status NmsCpu(const Nms& op, const Context& context, Tensor<const float, 2> boxes, Tensor<const float, 1> scores,
              Pending<int64_t, 1> keep) {
  const int64_t count = boxes.dim(0);
  POLYOP_RETURN_IF_ERROR(CheckOrdered(count));
  const Scratch<int64_t> order = context.Allocate<int64_t>(count);
  const Scratch<char> memory = context.Allocate<char>(UprightBoxes::BytesFor(count));
  if (!order || !memory) return Internal("out of memory: scratch for ", count, " boxes");
  int64_t candidates = count;
  if (op.score_threshold > -std::numeric_limits<float>::infinity()) {
    candidates = SortAbove(scores.data(), count, op.score_threshold, order.data());
  } else {
    SortByDescendingScore(scores.data(), order.span());
  }
  const auto sorted = UprightBoxes::In(memory.data(), count, op.iou_threshold, static_cast<float>(op.offset));
  for (int64_t i = 0; i < candidates; ++i) SetBox(sorted, i, boxes.data() + 4 * order[i], op.center_point_box);
  const int64_t kept = SuppressGreedily(sorted, candidates, candidates, &context);
  Tensor<int64_t, 1> result;
  POLYOP_RETURN_IF_ERROR(keep.Allocate(kept, &result));
  for (int64_t k = 0; k < kept; ++k) result[k] = order[sorted.kept_index[k]];
  return Status::Ok();
}

// A set is the boxes of one image with the scores of one class. Sets are computed in parallel; a single set is itself
// divided.
Status NmsOfClasses(const Nms& op, const Context& context, Tensor<const float, 3> boxes, Tensor<const float, 3> scores,
                    Tensor<int32_t, 2> selected) {
  const int64_t count = boxes.dim(1), classes = scores.dim(1), sets = boxes.dim(0) * classes;
  if (count > INT32_MAX) return InvalidArgument("'boxes': expected at most ", INT32_MAX, " boxes, got ", count);
  const int64_t max_boxes = selected.dim(0) / sets;
  const double nanoseconds = 20.0 * static_cast<double>(count);
  const int64_t bytes = (UprightBoxes::BytesFor(count) + 63) / 64 * 64;
  const int64_t order_bytes = count * static_cast<int64_t>(sizeof(int64_t));
  const Scratch<int64_t> kept = context.Allocate<int64_t>(sets);
  // Every class first writes to separate rows, which are compacted afterwards.
  const auto suppress = [&](char* memory, int64_t begin, int64_t end) {
    auto* const class_order = reinterpret_cast<int64_t*>(memory + bytes);
    const auto sorted = UprightBoxes::In(memory, count, op.iou_threshold, static_cast<float>(op.offset));
    for (int64_t set = begin; set < end; ++set) {
      const float* const from = boxes.data() + set / classes * count * 4;
      const int64_t candidates = SortAbove(scores.data() + set * count, count, op.score_threshold, class_order);
      for (int64_t i = 0; i < candidates; ++i) SetBox(sorted, i, from + 4 * class_order[i], op.center_point_box);
      kept[set] = SuppressGreedily(sorted, candidates, max_boxes, sets == 1 ? &context : nullptr);
      int32_t* const rows = selected.data() + set * max_boxes * 3;
      for (int64_t k = 0; k < kept[set]; ++k) {
        rows[3 * k] = static_cast<int32_t>(set / classes);
        rows[3 * k + 1] = static_cast<int32_t>(set % classes);
        rows[3 * k + 2] = static_cast<int32_t>(class_order[sorted.kept_index[k]]);
      }
    }
  };
  if (!kept || !context.ParallelForWithScratch<char>(sets, GrainFor(nanoseconds), bytes + order_bytes, suppress)) {
    return Internal("out of memory: scratch for ", count, " boxes of ", sets, " classes");
  }
  int64_t rows = 0;
  for (int64_t set = 0; set < sets; ++set) {
    std::copy_n(selected.data() + set * max_boxes * 3, kept[set] * 3, selected.data() + rows * 3);
    rows += kept[set];
  }
  std::fill(selected.data() + rows * 3, selected.data() + selected.size(), -1);
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(Nms, NmsCpu);
POLYOP_CPU_KERNEL(Nms, NmsOfClasses);
}  // namespace polyop
#endif
