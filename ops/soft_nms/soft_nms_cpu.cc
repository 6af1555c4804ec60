#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/soft_nms/soft_nms_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/boxes-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/soft_nms/soft_nms.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr float kGone = -std::numeric_limits<float>::infinity();

// The boxes that are still in the race, in their first order. A box that went has the score kGone until
// the arrays are compacted.
struct Race {
  BoxArrays boxes;
  float* scores;   // kGone behind the end, up to a whole vector
  int64_t* index;  // in the input
  int64_t count = 0, alive = 0;

  void Compact() {
    int64_t to = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (scores[i] == kGone) continue;
      boxes.Copy(to, boxes, i);
      scores[to] = scores[i];
      index[to++] = index[i];
    }
    std::fill(scores + to, scores + std::min(count, to + BoxArrays::kPad), kGone);
    count = to;
  }
};

template <class D, class V>
HWY_INLINE V WeightOf(D d, V iou, const SoftNms& op) {
  const auto one = hn::Set(d, 1.0f);
  if (op.method == SoftNms::Method::kGaussian) {
    return hn::Exp(d, hn::Mul(hn::Mul(iou, iou), hn::Set(d, -1.0f / op.sigma)));
  }
  const auto overlaps = hn::Ge(iou, hn::Set(d, op.iou_threshold));
  return hn::IfThenElse(overlaps, op.method == SoftNms::Method::kLinear ? hn::Sub(one, iou) : hn::Zero(d), one);
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
  const auto least = hn::Set(d, op.min_score);
  // A threshold of 0 acts on boxes that do not even touch.
  const bool touches_all = op.method != SoftNms::Method::kGaussian && op.iou_threshold <= 0;
  auto best = gone;
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
      iou = hn::IfThenElseZero(hn::And(touching, hn::Gt(iou, zero)), iou);  // NaN becomes 0
      const auto in_race = hn::Ne(score, gone);
      score = hn::IfThenElse(in_race, hn::Mul(score, WeightOf(d, iou, op)), gone);
    }
    score = hn::IfThenElse(hn::Lt(score, least), gone, score);
    hn::StoreU(score, d, race.scores + i);
    alive += static_cast<int64_t>(hn::CountTrue(d, hn::Ne(score, gone)));
    best = hn::Max(best, score);
  }
  race.alive = alive;
  if (alive == 0) return -1;
  const float maximum = hn::ReduceMax(d, best);
  return std::find(race.scores, race.scores + race.count, maximum) - race.scores;
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
    race.scores[race.count] = std::max(scores[i], -std::numeric_limits<float>::max());  // kGone is not a score
    race.index[race.count++] = i;
  }
  std::fill_n(race.scores + race.count, BoxArrays::kPad, kGone);

  int64_t* const taken = index.data() + count;
  int64_t turns = 0;
  int64_t best = race.count == 0 ? -1 : std::max_element(race.scores, race.scores + race.count) - race.scores;
  while (best >= 0) {
    taken[turns] = race.index[best];
    lowered[turns++] = race.scores[best];
    race.scores[best] = kGone;
    float box[BoxArrays::kArrays] = {race.boxes.x1[best], race.boxes.y1[best], race.boxes.x2[best], race.boxes.y2[best],
                                     race.boxes.area[best]};
    best = LowerScores(race, {box, box + 1, box + 2, box + 3, box + 4}, op);
    if (best >= 0 && race.alive < race.count - race.count / 8) {
      race.Compact();
      best = std::max_element(race.scores, race.scores + race.count) - race.scores;
    }
  }

  Tensor<float, 2> out;
  Tensor<int64_t, 1> kept;
  POLYOP_RETURN_IF_ERROR(dets.Allocate(turns, &out));
  POLYOP_RETURN_IF_ERROR(keep.Allocate(turns, &kept));
  for (int64_t i = 0; i < turns; ++i) {
    std::copy_n(boxes.data() + 4 * taken[i], 4, out.data() + 5 * i);
    out[5 * i + 4] = scores[taken[i]] == kGone ? kGone : lowered[i];
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
