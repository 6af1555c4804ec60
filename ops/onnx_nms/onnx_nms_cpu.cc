#include <algorithm>
#include <optional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/onnx_nms/onnx_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/score_order.h"
#include "families/boxes/suppression-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/onnx_nms/onnx_nms.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Upright boxes whose overlap is decided in float.
struct BoxesInFloat : UprightBoxes {
  bool Overlaps(int64_t candidate, const KeptAmong& among) const {
    const auto corners = [](const BoxArrays& boxes, int64_t i, float to[4]) {
      to[0] = boxes.x1[i];
      to[1] = boxes.y1[i];
      to[2] = boxes.x2[i];
      to[3] = boxes.y2[i];
    };
    float mine[4];
    corners(sorted, candidate, mine);
    return AnySuspectAmong<false>(candidate, among, threshold, [&](int64_t k) {
      float other[4];
      corners(kept, k, other);
      return OverlapsInFloat(other, mine, threshold);
    });
  }
};

// Scratch of one task, and the boxes of one class after the other.
class ClassSuppressor {
 public:
  ClassSuppressor(const OnnxNms& op, const OnnxNmsRule& rule, int64_t count, int64_t* order, void* memory)
      : center_point_box_(op.center_point_box),
        rule_(rule),
        count_(count),
        order_(order),
        boxes_{UprightBoxes::In(memory, count, rule.iou_threshold, 0)} {}

  /// Writes the boxes that stay to `kept`; returns how many.
  int64_t Run(const float* boxes, const float* scores, const Context* context, int64_t* kept) const {
    const int64_t candidates =
        rule_.all ? ScoreKeys(scores, count_, order_) : ScoreKeysAbove(scores, count_, rule_.score_threshold, order_);
    // Few boxes may be wanted of many: they are put in order as they are needed.
    int64_t stayed = 0;
    for (int64_t begin = 0, some = std::max<int64_t>(2 * rule_.most, 64); begin < candidates && stayed < rule_.most;
         begin += some, some *= 2) {
      const int64_t end = std::min(candidates, begin + some);
      SortFirst(order_ + begin, candidates - begin, end - begin);
      for (int64_t i = begin; i < end; ++i) {
        float corners[4];
        OrderedCorners(boxes + 4 * order_[i], center_point_box_, corners);
        boxes_.Set(i, corners);
      }
      stayed = SuppressGreedily(boxes_, end, rule_.most, context, begin, stayed);
    }
    for (int64_t k = 0; k < stayed; ++k) kept[k] = order_[boxes_.kept_index[k]];
    return stayed;
  }

 private:
  bool center_point_box_;
  const OnnxNmsRule& rule_;
  int64_t count_;
  int64_t* order_;
  BoxesInFloat boxes_;
};

Status OnnxNmsCpu(const OnnxNms& op, const Context& context, Tensor<const float, 3> boxes,
                  Tensor<const float, 3> scores, std::optional<Tensor<const int64_t, 0>> most,
                  std::optional<Tensor<const float, 0>> iou_threshold,
                  std::optional<Tensor<const float, 0>> score_threshold, Pending<int64_t, 2> selected) {
  OnnxNmsRule rule;
  if (most) rule.most = std::clamp<int64_t>((*most)[0], 0, boxes.dim(1));
  if (iou_threshold) rule.iou_threshold = (*iou_threshold)[0];
  if (score_threshold) rule.score_threshold = (*score_threshold)[0];
  rule.all = !score_threshold;
  POLYOP_RETURN_IF_ERROR(rule.Check());
  const int64_t count = boxes.dim(1), classes = scores.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckOrdered(count));
  const int64_t sets = count == 0 || rule.most == 0 ? 0 : scores.dim(0) * classes;
  const int64_t grain = GrainFor(20.0 * static_cast<double>(count)), tasks = Context::NumTasks(sets, grain);
  const int64_t bytes = (UprightBoxes::BytesFor(count) + 63) / 64 * 64;
  const Scratch<int64_t> order = context.Allocate<int64_t>(tasks * count);
  const Scratch<char> memory = context.Allocate<char>(tasks * bytes);
  const Scratch<int64_t> kept = context.Allocate<int64_t>(sets * rule.most);
  const Scratch<int64_t> stayed = context.Allocate<int64_t>(sets);
  if (!order || !memory || !kept || !stayed) {
    return Internal("out of memory: scratch for ", count, " boxes of ", sets, " classes");
  }
  context.ParallelFor(sets, grain, [&](int64_t task, int64_t begin, int64_t end) {
    const ClassSuppressor suppress(op, rule, count, order.data() + task * count, memory.data() + task * bytes);
    for (int64_t set = begin; set < end; ++set) {
      stayed[set] = suppress.Run(boxes.data() + set / classes * count * 4, scores.data() + set * count,
                                 sets == 1 ? &context : nullptr, kept.data() + set * rule.most);
    }
  });
  int64_t rows = 0;
  for (int64_t set = 0; set < sets; ++set) rows += stayed[set];
  Tensor<int64_t, 2> result;
  POLYOP_RETURN_IF_ERROR(selected.Allocate(rows, &result));
  int64_t* row = result.data();
  for (int64_t set = 0; set < sets; ++set) {
    for (int64_t k = 0; k < stayed[set]; ++k, row += 3) {
      row[0] = set / classes;
      row[1] = set % classes;
      row[2] = kept[set * rule.most + k];
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
POLYOP_CPU_KERNEL(OnnxNms, OnnxNmsF32, OnnxNmsCpu);
}  // namespace polyop
#endif
