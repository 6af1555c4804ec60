#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/soft_nms/soft_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/boxes-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/soft_nms/soft_nms_rule.h"

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

// Puts the exact IoU into the lanes in doubt. Out of line: hardly any vector has one.
template <class D, class V, class M>
HWY_NOINLINE V DecideExactly(D d, V iou, M doubtful, const BoxArrays& taken, const BoxArrays& others, int64_t i,
                             float offset) {
  HWY_ALIGN float ious[hn::MaxLanes(d)];
  HWY_ALIGN float doubts[hn::MaxLanes(d)];
  hn::Store(iou, d, ious);
  hn::Store(hn::IfThenElseZero(doubtful, hn::Set(d, 1.0f)), d, doubts);
  const float box[4] = {*taken.x1, *taken.y1, *taken.x2, *taken.y2};
  for (int64_t lane = 0; lane < static_cast<int64_t>(hn::Lanes(d)); ++lane) {
    const int64_t k = i + lane;
    const float other[4] = {others.x1[k], others.y1[k], others.x2[k], others.y2[k]};
    if (doubts[lane] != 0) ious[lane] = ExactIou(box, other, offset);
  }
  return hn::Load(d, ious);
}

// Lowers all scores by their box's overlap with `taken`, and returns the place of the best one left: of
// equal scores the first. -1 if none is left.
int64_t LowerScores(Race& race, const BoxArrays& taken, const SoftNms& op) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float offset = static_cast<float>(op.offset);
  const auto x1 = hn::Set(d, *taken.x1), y1 = hn::Set(d, *taken.y1), x2 = hn::Set(d, *taken.x2),
             y2 = hn::Set(d, *taken.y2);
  const auto area = hn::Set(d, *taken.area), shift = hn::Set(d, offset), zero = hn::Zero(d), gone = hn::Set(d, kGone);
  const auto least = hn::Set(d, op.min_score), threshold = hn::Set(d, op.iou_threshold);
  // A threshold of 0 acts on boxes that do not even touch.
  const bool touches_all = op.method != SoftNms::Method::kGaussian && op.iou_threshold <= 0;
  auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
  int64_t alive = 0;
  for (int64_t i = 0; i < race.count; i += lanes) {
    auto score = hn::LoadU(d, race.scores + i);
    const auto width = hn::Add(
        hn::Sub(hn::Min(x2, hn::LoadU(d, race.boxes.x2 + i)), hn::Max(x1, hn::LoadU(d, race.boxes.x1 + i))), shift);
    const auto height = hn::Add(
        hn::Sub(hn::Min(y2, hn::LoadU(d, race.boxes.y2 + i)), hn::Max(y1, hn::LoadU(d, race.boxes.y1 + i))), shift);
    const auto touching = hn::And(hn::Gt(width, zero), hn::Gt(height, zero));
    if (touches_all || !hn::AllFalse(d, touching)) {
      const auto intersection = hn::IfThenElseZero(touching, hn::Mul(width, height));
      const auto united = hn::Sub(hn::Add(area, hn::LoadU(d, race.boxes.area + i)), intersection);
      auto iou = hn::Div(intersection, united);
      const auto in_range =
          hn::And(hn::Gt(united, hn::Set(d, IouDoubt::kLeastUnion)), hn::Lt(united, hn::Set(d, IouDoubt::kMostUnion)));
      const auto near = hn::Or(hn::Le(hn::Abs(hn::Sub(iou, threshold)), hn::Set(d, IouDoubt::kMargin)),
                               hn::Ge(iou, hn::Set(d, IouDoubt::kNearlyOne)));
      const auto doubtful = hn::And(touching, hn::Or(hn::Not(in_range), near));
      if (!hn::AllFalse(d, doubtful)) iou = DecideExactly(d, iou, doubtful, taken, race.boxes, i, offset);
      iou = hn::IfThenElseZero(hn::And(touching, hn::Gt(iou, zero)), iou);  // NaN becomes 0
      const auto weight = WeightOf(d, iou, op);
      const auto lowered = hn::IfThenElseZero(hn::Ge(weight, hn::Set(d, kLeastWeight)), hn::Mul(score, weight));
      score = hn::IfThenElse(hn::Eq(score, score), lowered, gone);
    }
    score = hn::IfThenElse(hn::Lt(score, least), gone, score);
    hn::StoreU(score, d, race.scores + i);
    alive += static_cast<int64_t>(hn::CountTrue(d, hn::Eq(score, score)));
    best = hn::IfThenElse(hn::Gt(score, best), score, best);
  }
  race.alive = alive;
  if (alive == 0) return -1;
  const float maximum = hn::ReduceMax(d, best);
  const int64_t place = std::find(race.scores, race.scores + race.count, maximum) - race.scores;
  return place < race.count ? place : -1;
}

Status SoftNmsCpu(const SoftNms& op, const Context& context, Tensor<const float, 2> boxes,
                  Tensor<const float, 1> scores, Pending<float, 2> dets, Pending<int64_t, 1> keep) {
  const int64_t count = boxes.dim(0);
  const Scratch<float> memory = context.Allocate<float>(BoxArrays::FloatsFor(count) + count + BoxArrays::kPad);
  const Scratch<int64_t> index = context.Allocate<int64_t>(2 * count);
  const Scratch<float> lowered = context.Allocate<float>(count);
  if (!memory || !index || !lowered) return Internal("out of memory: scratch for ", count, " boxes");
  Race race{BoxArrays::In(memory.data(), count), memory.data() + BoxArrays::FloatsFor(count), index.data()};
  std::fill_n(memory.data(), memory.size(), 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(scores[i])) continue;
    race.boxes.Set(race.count, boxes.data() + 4 * i, static_cast<float>(op.offset));
    race.scores[race.count] = scores[i];
    race.index[race.count++] = i;
  }
  std::fill_n(race.scores + race.count, BoxArrays::kPad, kGone);

  int64_t* const taken = index.data() + count;
  int64_t turns = 0;
  int64_t best = race.Best();
  while (best >= 0 && turns < count) {
    taken[turns] = race.index[best];
    lowered[turns++] = race.scores[best];
    race.scores[best] = kGone;
    float box[BoxArrays::kArrays] = {race.boxes.x1[best], race.boxes.y1[best], race.boxes.x2[best], race.boxes.y2[best],
                                     race.boxes.area[best]};
    best = LowerScores(race, {box, box + 1, box + 2, box + 3, box + 4}, op);
    if (best >= 0 && race.alive < race.count - race.count / 8) {
      race.Compact();
      best = race.Best();
    }
  }

  Tensor<float, 2> out;
  Tensor<int64_t, 1> kept;
  POLYOP_RETURN_IF_ERROR(dets.Allocate(turns, &out));
  POLYOP_RETURN_IF_ERROR(keep.Allocate(turns, &kept));
  for (int64_t i = 0; i < turns; ++i) {
    std::copy_n(boxes.data() + 4 * taken[i], 4, out.data() + 5 * i);
    out[5 * i + 4] = lowered[i];
    kept[i] = taken[i];
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
