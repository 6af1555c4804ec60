// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/onnx_nms/onnx_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/item_groups.h"
#include "kernels/cpu/simd.h"
#include "ops/boxes/onnx_nms/onnx_nms.h"
#include "ops/boxes/score_order.h"
#include "ops/boxes/suppression-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Axis-aligned boxes whose overlap is decided in float.
struct BoxesInFloat : UprightBoxes {
  bool Overlaps(int64_t candidate, const KeptSubset& among) const {
    const auto corners = [](const BoxArrays& boxes, int64_t i, float to[4]) {
      to[0] = boxes.x1[i];
      to[1] = boxes.y1[i];
      to[2] = boxes.x2[i];
      to[3] = boxes.y2[i];
    };
    float box[4];
    corners(sorted, candidate, box);
    return AnySuspectIn<false>(candidate, among, threshold, [&](int64_t k) {
      float other[4];
      corners(kept, k, other);
      return OverlapsInFloat(other, box, threshold);
    });
  }
};

// Suppresses the boxes of one class at a time, with the scratch memory of one task.
class ClassSuppressor {
 public:
  ClassSuppressor(const OnnxNms& op, const OnnxNmsRule& rule, int64_t count, int64_t* order, void* memory)
      : center_point_box_(op.center_point_box),
        rule_(rule),
        count_(count),
        order_(order),
        boxes_{UprightBoxes::In(memory, count, rule.iou_threshold, 0)} {}

  /// Writes the kept boxes to `kept` and returns their number.
  int64_t Run(const float* boxes, const float* scores, const Context* context, int64_t* kept) const {
    const int64_t candidates =
        rule_.all ? ScoreKeys(scores, count_, order_) : ScoreKeysAbove(scores, count_, rule_.score_threshold, order_);
    // Boxes are sorted chunk by chunk as needed, because max_boxes may be small compared with the number of boxes.
    int64_t num_kept = 0;
    for (int64_t begin = 0, chunk = std::max<int64_t>(2 * rule_.max_boxes, 64);
         begin < candidates && num_kept < rule_.max_boxes; begin += chunk, chunk *= 2) {
      const int64_t end = std::min(candidates, begin + chunk);
      SortFirst(order_ + begin, candidates - begin, end - begin);
      for (int64_t i = begin; i < end; ++i) {
        float corners[4];
        OrderedCorners(boxes + 4 * order_[i], center_point_box_, corners);
        boxes_.Set(i, corners);
      }
      num_kept = SuppressGreedily(boxes_, end, rule_.max_boxes, context, begin, num_kept);
    }
    for (int64_t k = 0; k < num_kept; ++k) kept[k] = order_[boxes_.kept_index[k]];
    return num_kept;
  }

 private:
  bool center_point_box_;
  const OnnxNmsRule& rule_;
  int64_t count_;
  int64_t* order_;
  BoxesInFloat boxes_;
};

// A list of boxes whose final length is unknown.
class KeptList {
 public:
  explicit KeptList(const Context& context) : context_(context) {}

  // Returns false if out of memory.
  bool Append(const int64_t* boxes, int64_t count) {
    if (!memory_ || size_ + count > memory_->size()) {
      Scratch<uint32_t> larger = context_.Allocate<uint32_t>(2 * (size_ + count));
      if (!larger) return false;
      if (memory_) std::copy_n(memory_->data(), size_, larger.data());
      memory_.emplace(std::move(larger));
    }
    for (int64_t i = 0; i < count; ++i) (*memory_)[size_ + i] = static_cast<uint32_t>(boxes[i]);
    size_ += count;
    return true;
  }
  const uint32_t* data() const { return memory_ ? memory_->data() : nullptr; }

 private:
  const Context& context_;
  std::optional<Scratch<uint32_t>> memory_;
  int64_t size_ = 0;
};

Status OnnxNmsCpu(const OnnxNms& op, const Context& context, Tensor<const float, 3> boxes,
                  Tensor<const float, 3> scores, std::optional<Tensor<const int64_t, 0>> max_boxes,
                  std::optional<Tensor<const float, 0>> iou_threshold,
                  std::optional<Tensor<const float, 0>> score_threshold, Pending<int64_t, 2> selected) {
  OnnxNmsRule rule;
  if (max_boxes) rule.max_boxes = std::clamp<int64_t>((*max_boxes)[0], 0, boxes.dim(1));
  if (iou_threshold) rule.iou_threshold = (*iou_threshold)[0];
  if (score_threshold) rule.score_threshold = (*score_threshold)[0];
  rule.all = !score_threshold;
  POLYOP_RETURN_IF_ERROR(rule.Check());
  const int64_t count = boxes.dim(1), classes = scores.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckOrdered(count));
  const int64_t sets = count == 0 || rule.max_boxes == 0 ? 0 : scores.dim(0) * classes;
  // Boxes are collected in the order of the classes, and the kept ones of some classes at a time.
  const ItemGroups groups(sets, static_cast<double>(rule.max_boxes) * sizeof(int64_t));
  const int64_t grain = GrainFor(20.0 * static_cast<double>(count));
  const int64_t bytes = (UprightBoxes::BytesFor(count) + 63) / 64 * 64;
  const int64_t order_bytes = count * static_cast<int64_t>(sizeof(int64_t));
  const Scratch<int64_t> kept = context.Allocate<int64_t>(groups.at_once() * rule.max_boxes);
  const Scratch<int64_t> num_kept = context.Allocate<int64_t>(sets);
  if (!kept || !num_kept) return Internal("out of memory: scratch for ", count, " boxes of ", sets, " classes");
  KeptList list(context);
  int64_t rows = 0;
  bool fits = true;
  groups.ForEach([&](int64_t from, int64_t some) {
    const auto suppress_classes = [&](char* memory, int64_t begin, int64_t end) {
      const ClassSuppressor suppress(op, rule, count, reinterpret_cast<int64_t*>(memory + bytes), memory);
      for (int64_t slot = begin; slot < end; ++slot) {
        const int64_t set = from + slot;
        num_kept[set] = suppress.Run(boxes.data() + set / classes * count * 4, scores.data() + set * count,
                                     sets == 1 ? &context : nullptr, kept.data() + slot * rule.max_boxes);
      }
    };
    fits = fits && context.ParallelForWithScratch<char>(some, grain, bytes + order_bytes, suppress_classes);
    for (int64_t slot = 0; fits && slot < some; ++slot) {
      fits = list.Append(kept.data() + slot * rule.max_boxes, num_kept[from + slot]);
      rows += num_kept[from + slot];
    }
  });
  if (!fits) return Internal("out of memory: scratch for ", count, " boxes, and a list of ", rows);
  Tensor<int64_t, 2> result;
  POLYOP_RETURN_IF_ERROR(selected.Allocate(rows, &result));
  int64_t* row = result.data();
  const uint32_t* box = list.data();
  for (int64_t set = 0; set < sets; ++set) {
    for (int64_t k = 0; k < num_kept[set]; ++k, row += 3) {
      row[0] = set / classes;
      row[1] = set % classes;
      row[2] = *box++;
    }
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(OnnxNms, OnnxNmsCpu);
}  // namespace polyop
#endif
