// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/soft_nms/soft_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/boxes/soft_nms/soft_nms_rule.h"
#include "ops/boxes/soft_nms/tournament.h"
#include "ops/boxes/suppression-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The score of a removed box. Other scores are never NaN, so removed boxes compare false with everything, including
// themselves. Ne is not used, because for NaN it differs between instruction sets.
constexpr float kRemoved = std::numeric_limits<float>::quiet_NaN();

bool IsRemoved(float score) { return std::isnan(score); }

// The remaining boxes in the order of the input. Removed boxes stay in the arrays until Compact().
struct ActiveBoxes {
  BoxArrays boxes;
  float* scores;   // padded with kRemoved up to a full vector
  int64_t* index;  // indices in the input
  int64_t count = 0, remaining = 0;

  void Compact() {
    int64_t to = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (IsRemoved(scores[i])) continue;
      boxes.Copy(to, boxes, i);
      scores[to] = scores[i];
      index[to++] = index[i];
    }
    std::fill(scores + to, scores + std::min(count, to + BoxArrays::kPad), kRemoved);
    count = to;
  }

  // Returns the slot of the highest score, the first one among equal scores; -1 if no boxes remain.
  int64_t Best() const {
    int64_t best = -1;
    for (int64_t i = 0; i < count; ++i) {
      if (!IsRemoved(scores[i]) && (best < 0 || scores[i] > scores[best])) best = i;
    }
    return best;
  }
};

template <class D, class V>
HWY_INLINE V WeightOf(D d, V iou, const SoftNms& op) {
  const auto one = hn::Set(d, 1.0f);
  if (op.method == SoftNms::Method::kGaussian) {
    return hn::Exp(d, hn::Neg(hn::Div(hn::Mul(iou, iou), hn::Set(d, op.sigma))));
  }
  const auto overlaps = hn::Ge(iou, hn::Set(d, op.iou_threshold));
  return hn::IfThenElse(overlaps, op.method == SoftNms::Method::kLinear ? hn::Sub(one, iou) : hn::Zero(d), one);
}

// A selected box.
struct SelectedBox {
  float x1, y1, x2, y2, area;

  SelectedBox(const BoxArrays& boxes, int64_t i)
      : x1(boxes.x1[i]), y1(boxes.y1[i]), x2(boxes.x2[i]), y2(boxes.y2[i]), area(boxes.area[i]) {}
};

// Replaces the IoU in doubtful lanes by the exact IoU. Not inlined, because few vectors have such lanes.
template <class D, class V, class M>
HWY_NOINLINE V DecideExactly(D d, V iou, M doubtful, SelectedBox selected, const BoxArrays& others, int64_t i,
                             float offset) {
  HWY_ALIGN float ious[hn::MaxLanes(d)];
  HWY_ALIGN float doubts[hn::MaxLanes(d)];
  hn::Store(iou, d, ious);
  hn::Store(hn::IfThenElseZero(doubtful, hn::Set(d, 1.0f)), d, doubts);
  const float box[4] = {selected.x1, selected.y1, selected.x2, selected.y2};
  for (int64_t lane = 0; lane < static_cast<int64_t>(hn::Lanes(d)); ++lane) {
    const int64_t k = i + lane;
    const float other[4] = {others.x1[k], others.y1[k], others.x2[k], others.y2[k]};
    if (doubts[lane] != 0) ious[lane] = ExactIou(box, other, offset);
  }
  return hn::Load(d, ious);
}

// Returns whether scores of boxes that do not touch are lowered, too, which a threshold of 0 implies.
bool ActsOnAll(const SoftNms& op) { return op.method != SoftNms::Method::kGaussian && op.iou_threshold <= 0; }

// Lowers the scores of other boxes by their overlap with a selected box.
template <class D>
class Lowering {
 public:
  Lowering(const SelectedBox& selected, const SoftNms& op)
      : selected_(selected),
        op_(op),
        acts_on_all_(ActsOnAll(op)),
        x1_(hn::Set(d_, selected.x1)),
        y1_(hn::Set(d_, selected.y1)),
        x2_(hn::Set(d_, selected.x2)),
        y2_(hn::Set(d_, selected.y2)),
        area_(hn::Set(d_, selected.area)),
        shift_(hn::Set(d_, static_cast<float>(op.offset))),
        least_(hn::Set(d_, LeastExtent(static_cast<float>(op.offset)))),
        threshold_(hn::Set(d_, op.iou_threshold)) {}

  // Lowers the scores of the vector of boxes from `i` on and returns whether any may have changed. Removed boxes remain
  // removed.
  HWY_INLINE bool Apply(const BoxArrays& boxes, int64_t i, hn::Vec<D>* score) const {
    const auto zero = hn::Zero(d_);
    const auto width =
        hn::Add(hn::Sub(hn::Min(x2_, hn::LoadU(d_, boxes.x2 + i)), hn::Max(x1_, hn::LoadU(d_, boxes.x1 + i))), shift_);
    const auto height =
        hn::Add(hn::Sub(hn::Min(y2_, hn::LoadU(d_, boxes.y2 + i)), hn::Max(y1_, hn::LoadU(d_, boxes.y1 + i))), shift_);
    const auto touching = hn::And(hn::Gt(width, least_), hn::Gt(height, least_));
    if (!acts_on_all_ && hn::AllFalse(d_, touching)) return false;
    const auto intersection = hn::IfThenElseZero(touching, hn::Mul(width, height));
    const auto united = hn::Sub(hn::Add(area_, hn::LoadU(d_, boxes.area + i)), intersection);
    auto iou = hn::Div(intersection, united);
    const auto in_range =
        hn::And(hn::Gt(united, hn::Set(d_, IouDoubt::kMinUnion)), hn::Lt(united, hn::Set(d_, IouDoubt::kMaxUnion)));
    const auto near = hn::Or(hn::Le(hn::Abs(hn::Sub(iou, threshold_)), hn::Set(d_, IouDoubt::kMargin)),
                             hn::Ge(iou, hn::Set(d_, IouDoubt::kNearlyOne)));
    const auto doubtful = hn::And(touching, hn::Or(hn::Not(in_range), near));
    if (!hn::AllFalse(d_, doubtful)) {
      iou = DecideExactly(d_, iou, doubtful, selected_, boxes, i, static_cast<float>(op_.offset));
    }
    iou = hn::IfThenElseZero(hn::And(touching, hn::Gt(iou, zero)), iou);  // NaN becomes 0
    const auto weight = WeightOf(d_, iou, op_);
    const auto lowered = hn::IfThenElseZero(hn::Ge(weight, hn::Set(d_, kMinWeight)), hn::Mul(*score, weight));
    *score = hn::IfThenElse(hn::Eq(*score, *score), lowered, hn::Set(d_, kRemoved));
    return true;
  }

 private:
  const D d_{};
  const SelectedBox selected_;
  const SoftNms op_;
  const bool acts_on_all_;
  const hn::Vec<D> x1_, y1_, x2_, y2_, area_, shift_, least_, threshold_;
};

// Lowers all scores by the overlap with `selected` and returns the slot of the highest remaining score, the first one
// among equal scores; -1 if no boxes remain.
int64_t LowerScores(ActiveBoxes& active, const SelectedBox& selected, const SoftNms& op) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto removed = hn::Set(d, kRemoved), min_score = hn::Set(d, op.min_score);
  const Lowering<hn::ScalableTag<float>> lowering(selected, op);
  auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
  int64_t remaining = 0;
  for (int64_t i = 0; i < active.count; i += lanes) {
    auto score = hn::LoadU(d, active.scores + i);
    lowering.Apply(active.boxes, i, &score);
    score = hn::IfThenElse(hn::Lt(score, min_score), removed, score);
    hn::StoreU(score, d, active.scores + i);
    remaining += static_cast<int64_t>(hn::CountTrue(d, hn::Eq(score, score)));
    best = hn::IfThenElse(hn::Gt(score, best), score, best);
  }
  active.remaining = remaining;
  if (remaining == 0) return -1;
  const auto maximum = hn::Set(d, hn::ReduceMax(d, best));
  for (int64_t i = 0; i < active.count; i += lanes) {
    const auto lane = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, active.scores + i), maximum));
    if (lane >= 0) return i + lane;
  }
  return -1;
}

// The selected boxes and their scores, in the order of selection.
struct Selections {
  int64_t* selected;
  float* lowered;
  int64_t count = 0;

  void Add(int64_t index, float score) {
    selected[count] = index;
    lowered[count++] = score;
  }
};

// Runs Soft-NMS; every step visits all remaining boxes.
void RunOverAll(ActiveBoxes active, const SoftNms& op, Selections* selections) {
  int64_t best = active.Best();
  while (best >= 0) {
    selections->Add(active.index[best], active.scores[best]);
    active.scores[best] = kRemoved;
    best = LowerScores(active, SelectedBox(active.boxes, best), op);
    if (best >= 0 && active.remaining < active.count - active.count / 8) {
      active.Compact();
      best = active.Best();
    }
  }
}

// Runs Soft-NMS with a grid of cells: every step visits only the cells that the selected box overlaps, and a tournament
// tree holds the best score.
class CellSoftNms {
 public:
  // RunOverAll is faster for fewer than kMinBoxes boxes, and if a box shares cells with more than 1 / kCrowdedShare of
  // all boxes.
  static constexpr int64_t kMinBoxes = 2048, kCrowdedShare = 64;

  static bool Has(const SoftNms& op, int64_t count) {
    return count >= kMinBoxes && count < std::numeric_limits<int32_t>::max() && !ActsOnAll(op);
  }
  // Returns a multiple of 64.
  static int64_t BytesFor(int64_t count) {
    const int64_t floats = BoxArrays::FloatsFor(count) + count + BoxArrays::kPad;
    const int64_t nodes = static_cast<int64_t>(sizeof(Tournament::Node)) * Tournament::NodesFor(count);
    return (BoxCells::BytesFor(count) + nodes + 4 * (floats + 2 * count) + 63) / 64 * 64;
  }
  // Requires: `memory` has BytesFor(active.count) bytes and is aligned to 8 bytes.
  CellSoftNms(const ActiveBoxes& active, const SoftNms& op, void* memory)
      : op_(op), count_(active.count), cells_(memory, active.count) {
    nodes_ = reinterpret_cast<Tournament::Node*>(static_cast<char*>(memory) + BoxCells::BytesFor(count_));
    auto* const floats = reinterpret_cast<float*>(nodes_ + Tournament::NodesFor(count_));
    boxes_ = BoxArrays::In(floats, count_);
    scores_ = floats + BoxArrays::FloatsFor(count_);
    index_ = reinterpret_cast<int32_t*>(scores_ + count_ + BoxArrays::kPad);
    last_step_ = index_ + count_;
    ClearFor(&cells_, active.boxes, 0, count_, static_cast<float>(op.offset), count_);
    for (int64_t i = 0; i < count_; ++i) cells_.Count(SpanOf(cells_, active.boxes, i), 0);
    pairs_ = cells_.Arrange();
  }
  bool crowded() const { return pairs_ > static_cast<double>(count_) * static_cast<double>(count_ / kCrowdedShare); }

  void Run(const ActiveBoxes& active, Selections* selections) {
    Fill(active);
    // The first box is selected whatever its score is; afterwards all boxes below min_score are removed.
    const int64_t first = active.Best();
    if (first < 0) return;
    int64_t best = std::find(index_, index_ + count_, static_cast<int32_t>(first)) - index_;
    Select(best, active, selections);
    Lower(best, selections->count, [](int64_t) {});
    for (int64_t i = 0; i < count_; ++i) {
      if (scores_[i] < op_.min_score) scores_[i] = kRemoved;
    }
    Tournament tournament(nodes_, scores_, index_, count_);
    while ((best = tournament.Best()) >= 0) {
      Select(best, active, selections);
      tournament.Set(best, kRemoved);
      Lower(best, selections->count, [&](int64_t slot) { tournament.Set(slot, scores_[slot]); });
    }
  }

 private:
  // Copies the boxes to the slots of their cells. Boxes that overlap nothing follow after all cells.
  void Fill(const ActiveBoxes& active) {
    int64_t last_slot = count_;
    for (int64_t i = 0; i < count_; ++i) {
      int64_t slot = cells_.Add(SpanOf(cells_, active.boxes, i), 0);
      if (slot < 0) slot = --last_slot;
      boxes_.Copy(slot, active.boxes, i);
      scores_[slot] = active.scores[i];
      index_[slot] = static_cast<int32_t>(i);
    }
    std::fill_n(scores_ + count_, BoxArrays::kPad, kRemoved);
    std::fill_n(last_step_, count_, 0);
  }
  void Select(int64_t slot, const ActiveBoxes& active, Selections* selections) {
    selections->Add(active.index[index_[slot]], scores_[slot]);
    scores_[slot] = kRemoved;
  }
  // Lowers the scores of the boxes that the box in slot `slot` may overlap, and calls changed(slot) for each score that
  // changed. `step` counts from 1; it identifies the rows of cells that were already visited in this step.
  template <class Changed>
  void Lower(int64_t slot, int64_t step, const Changed& changed) {
    constexpr int64_t kMaxRows = 512;
    const CellSpan span = SpanOf(cells_, boxes_, slot);
    if (!span.meets()) return;
    CellRow rows[kMaxRows];
    int64_t found = cells_.Rows(span, 0, kMaxRows, rows);
    if (found < 0) {
      rows[0] = {0, static_cast<int32_t>(count_)};
      found = 1;
    }
    Prefetch(boxes_, std::span(rows, static_cast<size_t>(found)));
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto removed = hn::Set(d, kRemoved), min_score = hn::Set(d, op_.min_score);
    const Lowering<hn::ScalableTag<float>> lowering(SelectedBox(boxes_, slot), op_);
    for (int64_t r = 0; r < found; ++r) {
      if (last_step_[rows[r].begin] == static_cast<int32_t>(step)) continue;
      last_step_[rows[r].begin] = static_cast<int32_t>(step);
      const int64_t end = rows[r].end;
      for (int64_t i = rows[r].begin; i < end; i += lanes) {
        const auto before = hn::LoadU(d, scores_ + i);
        auto score = before;
        if (!lowering.Apply(boxes_, i, &score)) continue;
        score = hn::IfThenElse(hn::Lt(score, min_score), removed, score);
        const auto in_row = hn::FirstN(d, static_cast<size_t>(std::min(lanes, end - i)));
        score = hn::IfThenElse(in_row, score, before);
        hn::StoreU(score, d, scores_ + i);
        const auto changed_lanes = hn::And(hn::Eq(before, before), hn::Not(hn::Eq(score, before)));
        VisitLanes(d, changed_lanes, lanes, [&](int64_t lane) {
          changed(i + lane);
          return false;
        });
      }
    }
  }

  const SoftNms& op_;
  int64_t count_;
  BoxCells cells_;
  BoxArrays boxes_;  // by slot, like the following arrays
  float* scores_;
  int32_t* index_;      // index in ActiveBoxes
  int32_t* last_step_;  // the last step that visited the row of cells that begins here
  Tournament::Node* nodes_;
  double pairs_;
};

Status SoftNmsCpu(const SoftNms& op, const Context& context, Tensor<const float, 2> boxes,
                  Tensor<const float, 1> scores, Pending<float, 2> dets, Pending<int64_t, 1> keep) {
  const int64_t count = boxes.dim(0);
  const Scratch<float> memory = context.Allocate<float>(BoxArrays::FloatsFor(count) + count + BoxArrays::kPad);
  const Scratch<int64_t> index = context.Allocate<int64_t>(2 * count);
  const Scratch<float> lowered = context.Allocate<float>(count);
  const Scratch<char> cells = context.Allocate<char>(CellSoftNms::Has(op, count) ? CellSoftNms::BytesFor(count) : 0);
  if (!memory || !index || !lowered || !cells) return Internal("out of memory: scratch for ", count, " boxes");
  ActiveBoxes active{BoxArrays::In(memory.data(), count), memory.data() + BoxArrays::FloatsFor(count), index.data()};
  std::fill_n(memory.data(), memory.size(), 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(scores[i])) continue;
    active.boxes.Set(active.count, boxes.data() + 4 * i, static_cast<float>(op.offset));
    active.scores[active.count] = scores[i];
    active.index[active.count++] = i;
  }
  std::fill_n(active.scores + active.count, BoxArrays::kPad, kRemoved);

  Selections selections{index.data() + count, lowered.data()};
  std::optional<CellSoftNms> with_cells;
  if (CellSoftNms::Has(op, active.count)) with_cells.emplace(active, op, cells.data());
  if (with_cells && !with_cells->crowded()) {
    with_cells->Run(active, &selections);
  } else {
    RunOverAll(active, op, &selections);
  }

  Tensor<float, 2> out;
  Tensor<int64_t, 1> kept;
  POLYOP_RETURN_IF_ERROR(dets.Allocate(selections.count, &out));
  POLYOP_RETURN_IF_ERROR(keep.Allocate(selections.count, &kept));
  for (int64_t i = 0; i < selections.count; ++i) {
    std::copy_n(boxes.data() + 4 * selections.selected[i], 4, out.data() + 5 * i);
    out[5 * i + 4] = selections.lowered[i];
    kept[i] = selections.selected[i];
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(SoftNms, SoftNmsCpu);
}  // namespace polyop
#endif
