#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/soft_nms/soft_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/suppression-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/soft_nms/soft_nms_rule.h"
#include "ops/soft_nms/tournament.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The score of a box that went: it is the only NaN in the race, and compares false with all, itself too. (Ne is not
// used: for NaN it differs between instruction sets.)
constexpr float kGone = std::numeric_limits<float>::quiet_NaN();

bool IsGone(float score) { return std::isnan(score); }

// The boxes that are still in the race, in their first order. A box that went stays until the arrays are compacted.
struct Race {
  BoxArrays boxes;
  float* scores;   // kGone behind the end, up to a whole vector
  int64_t* index;  // in the input
  int64_t count = 0, alive = 0;

  void Compact() {
    int64_t to = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (IsGone(scores[i])) continue;
      boxes.Copy(to, boxes, i);
      scores[to] = scores[i];
      index[to++] = index[i];
    }
    std::fill(scores + to, scores + std::min(count, to + BoxArrays::kPad), kGone);
    count = to;
  }

  // The place of the highest score, of equal ones the first; -1 if none is left.
  int64_t Best() const {
    int64_t best = -1;
    for (int64_t i = 0; i < count; ++i) {
      if (!IsGone(scores[i]) && (best < 0 || scores[i] > scores[best])) best = i;
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

// A box that was taken.
struct Taken {
  float x1, y1, x2, y2, area;

  Taken(const BoxArrays& boxes, int64_t i)
      : x1(boxes.x1[i]), y1(boxes.y1[i]), x2(boxes.x2[i]), y2(boxes.y2[i]), area(boxes.area[i]) {}
};

// Puts the exact IoU into the lanes in doubt. Out of line: hardly any vector has one.
template <class D, class V, class M>
HWY_NOINLINE V DecideExactly(D d, V iou, M doubtful, Taken taken, const BoxArrays& others, int64_t i, float offset) {
  HWY_ALIGN float ious[hn::MaxLanes(d)];
  HWY_ALIGN float doubts[hn::MaxLanes(d)];
  hn::Store(iou, d, ious);
  hn::Store(hn::IfThenElseZero(doubtful, hn::Set(d, 1.0f)), d, doubts);
  const float box[4] = {taken.x1, taken.y1, taken.x2, taken.y2};
  for (int64_t lane = 0; lane < static_cast<int64_t>(hn::Lanes(d)); ++lane) {
    const int64_t k = i + lane;
    const float other[4] = {others.x1[k], others.y1[k], others.x2[k], others.y2[k]};
    if (doubts[lane] != 0) ious[lane] = ExactIou(box, other, offset);
  }
  return hn::Load(d, ious);
}

// A threshold of 0 acts on boxes that do not even touch.
bool ActsOnAll(const SoftNms& op) { return op.method != SoftNms::Method::kGaussian && op.iou_threshold <= 0; }

// What lowers the scores of other boxes: a box that was taken, in all lanes.
template <class D>
class Lowering {
 public:
  Lowering(const Taken& taken, const SoftNms& op)
      : taken_(taken),
        op_(op),
        acts_on_all_(ActsOnAll(op)),
        x1_(hn::Set(d_, taken.x1)),
        y1_(hn::Set(d_, taken.y1)),
        x2_(hn::Set(d_, taken.x2)),
        y2_(hn::Set(d_, taken.y2)),
        area_(hn::Set(d_, taken.area)),
        shift_(hn::Set(d_, static_cast<float>(op.offset))),
        threshold_(hn::Set(d_, op.iou_threshold)) {}

  // Lowers the scores of the vector of boxes from `i` on; returns whether any may have changed. Those that went stay
  // so.
  HWY_INLINE bool Apply(const BoxArrays& boxes, int64_t i, hn::Vec<D>* score) const {
    const auto zero = hn::Zero(d_);
    const auto width =
        hn::Add(hn::Sub(hn::Min(x2_, hn::LoadU(d_, boxes.x2 + i)), hn::Max(x1_, hn::LoadU(d_, boxes.x1 + i))), shift_);
    const auto height =
        hn::Add(hn::Sub(hn::Min(y2_, hn::LoadU(d_, boxes.y2 + i)), hn::Max(y1_, hn::LoadU(d_, boxes.y1 + i))), shift_);
    const auto touching = hn::And(hn::Gt(width, zero), hn::Gt(height, zero));
    if (!acts_on_all_ && hn::AllFalse(d_, touching)) return false;
    const auto intersection = hn::IfThenElseZero(touching, hn::Mul(width, height));
    const auto united = hn::Sub(hn::Add(area_, hn::LoadU(d_, boxes.area + i)), intersection);
    auto iou = hn::Div(intersection, united);
    const auto in_range =
        hn::And(hn::Gt(united, hn::Set(d_, IouDoubt::kLeastUnion)), hn::Lt(united, hn::Set(d_, IouDoubt::kMostUnion)));
    const auto near = hn::Or(hn::Le(hn::Abs(hn::Sub(iou, threshold_)), hn::Set(d_, IouDoubt::kMargin)),
                             hn::Ge(iou, hn::Set(d_, IouDoubt::kNearlyOne)));
    const auto doubtful = hn::And(touching, hn::Or(hn::Not(in_range), near));
    if (!hn::AllFalse(d_, doubtful)) {
      iou = DecideExactly(d_, iou, doubtful, taken_, boxes, i, static_cast<float>(op_.offset));
    }
    iou = hn::IfThenElseZero(hn::And(touching, hn::Gt(iou, zero)), iou);  // NaN becomes 0
    const auto weight = WeightOf(d_, iou, op_);
    const auto lowered = hn::IfThenElseZero(hn::Ge(weight, hn::Set(d_, kLeastWeight)), hn::Mul(*score, weight));
    *score = hn::IfThenElse(hn::Eq(*score, *score), lowered, hn::Set(d_, kGone));
    return true;
  }

 private:
  const D d_{};
  const Taken taken_;
  const SoftNms op_;
  const bool acts_on_all_;
  const hn::Vec<D> x1_, y1_, x2_, y2_, area_, shift_, threshold_;
};

// Lowers all scores by their box's overlap with `taken`, and returns the place of the best one left: of
// equal scores the first. -1 if none is left.
int64_t LowerScores(Race& race, const Taken& taken, const SoftNms& op) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto gone = hn::Set(d, kGone), least = hn::Set(d, op.min_score);
  const Lowering<hn::ScalableTag<float>> lowering(taken, op);
  auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
  int64_t alive = 0;
  for (int64_t i = 0; i < race.count; i += lanes) {
    auto score = hn::LoadU(d, race.scores + i);
    lowering.Apply(race.boxes, i, &score);
    score = hn::IfThenElse(hn::Lt(score, least), gone, score);
    hn::StoreU(score, d, race.scores + i);
    alive += static_cast<int64_t>(hn::CountTrue(d, hn::Eq(score, score)));
    best = hn::IfThenElse(hn::Gt(score, best), score, best);
  }
  race.alive = alive;
  if (alive == 0) return -1;
  const auto maximum = hn::Set(d, hn::ReduceMax(d, best));
  for (int64_t i = 0; i < race.count; i += lanes) {
    const auto lane = hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, race.scores + i), maximum));
    if (lane >= 0) return i + lane;
  }
  return -1;
}

// The turns of all boxes: which was taken, and with which score.
struct Turns {
  int64_t* taken;
  float* lowered;
  int64_t count = 0;

  void Add(int64_t index, float score) {
    taken[count] = index;
    lowered[count++] = score;
  }
};

// Every turn looks at all boxes that are left.
void RunAmongAll(Race race, const SoftNms& op, Turns* turns) {
  int64_t best = race.Best();
  while (best >= 0) {
    turns->Add(race.index[best], race.scores[best]);
    race.scores[best] = kGone;
    best = LowerScores(race, Taken(race.boxes, best), op);
    if (best >= 0 && race.alive < race.count - race.count / 8) {
      race.Compact();
      best = race.Best();
    }
  }
}

// The boxes by their cells: every turn looks into those that the taken box meets, and a tree knows the best score.
class RaceInCells {
 public:
  // Fewer boxes are faster among all, and so are boxes of which more share a cell than one in kCrowd.
  static constexpr int64_t kFewest = 2048, kCrowd = 64;

  static bool Has(const SoftNms& op, int64_t count) {
    return count >= kFewest && count < std::numeric_limits<int32_t>::max() && !ActsOnAll(op);
  }
  // A multiple of 64.
  static int64_t BytesFor(int64_t count) {
    const int64_t floats = BoxArrays::FloatsFor(count) + count + BoxArrays::kPad;
    const int64_t nodes = static_cast<int64_t>(sizeof(Tournament::Node)) * Tournament::NodesFor(count);
    return (BoxCells::BytesFor(count) + nodes + 4 * (floats + 2 * count) + 63) / 64 * 64;
  }
  // `memory`: BytesFor(race.count), aligned to 8 bytes.
  RaceInCells(const Race& race, const SoftNms& op, void* memory)
      : op_(op), count_(race.count), cells_(memory, race.count) {
    nodes_ = reinterpret_cast<Tournament::Node*>(static_cast<char*>(memory) + BoxCells::BytesFor(count_));
    auto* const floats = reinterpret_cast<float*>(nodes_ + Tournament::NodesFor(count_));
    boxes_ = BoxArrays::In(floats, count_);
    scores_ = floats + BoxArrays::FloatsFor(count_);
    index_ = reinterpret_cast<int32_t*>(scores_ + count_ + BoxArrays::kPad);
    seen_ = index_ + count_;
    ClearFor(&cells_, race.boxes, 0, count_, static_cast<float>(op.offset), count_);
    for (int64_t i = 0; i < count_; ++i) cells_.Count(SpanOf(cells_, race.boxes, i), 0);
    pairs_ = cells_.Arrange();
  }
  bool crowded() const { return pairs_ > static_cast<double>(count_) * static_cast<double>(count_ / kCrowd); }

  void Run(const Race& race, Turns* turns) {
    Fill(race);
    // The first box is taken whatever its score is; then all go that are below the least.
    const int64_t first = race.Best();
    if (first < 0) return;
    int64_t best = std::find(index_, index_ + count_, static_cast<int32_t>(first)) - index_;
    Take(best, race, turns);
    Lower(best, turns->count, [](int64_t) {});
    for (int64_t i = 0; i < count_; ++i) {
      if (scores_[i] < op_.min_score) scores_[i] = kGone;
    }
    Tournament tournament(nodes_, scores_, index_, count_);
    while ((best = tournament.Best()) >= 0) {
      Take(best, race, turns);
      tournament.Set(best, kGone);
      Lower(best, turns->count, [&](int64_t place) { tournament.Set(place, scores_[place]); });
    }
  }

 private:
  // Those that meet none come behind all cells.
  void Fill(const Race& race) {
    int64_t apart = count_;
    for (int64_t i = 0; i < count_; ++i) {
      int64_t place = cells_.Add(SpanOf(cells_, race.boxes, i), 0);
      if (place < 0) place = --apart;
      boxes_.Copy(place, race.boxes, i);
      scores_[place] = race.scores[i];
      index_[place] = static_cast<int32_t>(i);
    }
    std::fill_n(scores_ + count_, BoxArrays::kPad, kGone);
    std::fill_n(seen_, count_, 0);
  }
  void Take(int64_t place, const Race& race, Turns* turns) {
    turns->Add(race.index[index_[place]], scores_[place]);
    scores_[place] = kGone;
  }
  // Lowers the scores of those that the box at `place` may meet; changed(place) for each that changed. Turns count from
  // 1: they tell which rows came before.
  template <class Changed>
  void Lower(int64_t place, int64_t turn, const Changed& changed) {
    constexpr int64_t kMostRows = 512;
    const CellSpan span = SpanOf(cells_, boxes_, place);
    if (!span.meets()) return;
    CellRow rows[kMostRows];
    int64_t found = cells_.Rows(span, 0, kMostRows, rows);
    if (found < 0) {
      rows[0] = {0, static_cast<int32_t>(count_)};
      found = 1;
    }
    Prefetch(boxes_, std::span(rows, static_cast<size_t>(found)));
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    const auto gone = hn::Set(d, kGone), least = hn::Set(d, op_.min_score);
    const Lowering<hn::ScalableTag<float>> lowering(Taken(boxes_, place), op_);
    for (int64_t r = 0; r < found; ++r) {
      if (seen_[rows[r].begin] == static_cast<int32_t>(turn)) continue;
      seen_[rows[r].begin] = static_cast<int32_t>(turn);
      const int64_t end = rows[r].end;
      for (int64_t i = rows[r].begin; i < end; i += lanes) {
        const auto before = hn::LoadU(d, scores_ + i);
        auto score = before;
        if (!lowering.Apply(boxes_, i, &score)) continue;
        score = hn::IfThenElse(hn::Lt(score, least), gone, score);
        const auto in_row = hn::FirstN(d, static_cast<size_t>(std::min(lanes, end - i)));
        score = hn::IfThenElse(in_row, score, before);
        hn::StoreU(score, d, scores_ + i);
        const auto did = hn::And(hn::Eq(before, before), hn::Not(hn::Eq(score, before)));
        VisitLanes(d, did, lanes, [&](int64_t lane) {
          changed(i + lane);
          return false;
        });
      }
    }
  }

  const SoftNms& op_;
  int64_t count_;
  BoxCells cells_;
  BoxArrays boxes_;  // by place, as all that follows
  float* scores_;
  int32_t* index_;  // in the race
  int32_t* seen_;   // the last turn of the row that begins here
  Tournament::Node* nodes_;
  double pairs_;
};

Status SoftNmsCpu(const SoftNms& op, const Context& context, Tensor<const float, 2> boxes,
                  Tensor<const float, 1> scores, Pending<float, 2> dets, Pending<int64_t, 1> keep) {
  const int64_t count = boxes.dim(0);
  const Scratch<float> memory = context.Allocate<float>(BoxArrays::FloatsFor(count) + count + BoxArrays::kPad);
  const Scratch<int64_t> index = context.Allocate<int64_t>(2 * count);
  const Scratch<float> lowered = context.Allocate<float>(count);
  const Scratch<char> cells = context.Allocate<char>(RaceInCells::Has(op, count) ? RaceInCells::BytesFor(count) : 0);
  if (!memory || !index || !lowered || !cells) return Internal("out of memory: scratch for ", count, " boxes");
  Race race{BoxArrays::In(memory.data(), count), memory.data() + BoxArrays::FloatsFor(count), index.data()};
  std::fill_n(memory.data(), memory.size(), 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(scores[i])) continue;
    race.boxes.Set(race.count, boxes.data() + 4 * i, static_cast<float>(op.offset));
    race.scores[race.count] = scores[i];
    race.index[race.count++] = i;
  }
  std::fill_n(race.scores + race.count, BoxArrays::kPad, kGone);

  Turns turns{index.data() + count, lowered.data()};
  std::optional<RaceInCells> in_cells;
  if (RaceInCells::Has(op, race.count)) in_cells.emplace(race, op, cells.data());
  if (in_cells && !in_cells->crowded()) {
    in_cells->Run(race, &turns);
  } else {
    RunAmongAll(race, op, &turns);
  }

  Tensor<float, 2> out;
  Tensor<int64_t, 1> kept;
  POLYOP_RETURN_IF_ERROR(dets.Allocate(turns.count, &out));
  POLYOP_RETURN_IF_ERROR(keep.Allocate(turns.count, &kept));
  for (int64_t i = 0; i < turns.count; ++i) {
    std::copy_n(boxes.data() + 4 * turns.taken[i], 4, out.data() + 5 * i);
    out[5 * i + 4] = turns.lowered[i];
    kept[i] = turns.taken[i];
  }
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(SoftNms, SoftNmsF32, SoftNmsCpu);
}  // namespace polyop
#endif
