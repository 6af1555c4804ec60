#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nms_match/nms_match_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/score_order.h"
#include "families/boxes/suppression-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/nms_match/nms_match.h"
#include "ops/nms_match/nms_match_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The boxes of a class by falling score. A box goes to the first of those that take it, and takes others if there is
// none.
struct MatchedBoxes : SortedBoxes {
  static constexpr double kNanosecondsPerPair = 0.3;
  int64_t* taken_by;  // the number of the kept box that took a box
  float threshold;

  static int64_t BytesFor(int64_t capacity) { return 8 * capacity + SortedBoxes::BytesFor(capacity); }
  /// `memory`: BytesFor(capacity), aligned to 8 bytes.
  static MatchedBoxes In(void* memory, int64_t capacity, float threshold) {
    auto* const taken_by = static_cast<int64_t*>(memory);
    return {SortedBoxes::In(taken_by + capacity, capacity, 0), taken_by, threshold};
  }
  bool Overlaps(int64_t candidate, const KeptAmong& among) const {
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    int64_t first = kNone;
    if (threshold <= 0) {  // the best box of all, then, takes all others
      first = among.range.begin < among.range.end ? among.range.begin : kNone;
    } else {
      AnySuspectAmong<false>(candidate, among, threshold, [&](int64_t k) {
        if (k < first && Matches(sorted.Overlap(candidate, kept, k, 0), threshold)) first = k;
        return first == k && among.in_order();
      });
    }
    if (first != kNone) taken_by[candidate] = first;
    return first != kNone;
  }
  void Keep(int64_t candidate, int64_t number) const {
    SortedBoxes::Keep(candidate, number);
    taken_by[candidate] = -1;
  }
};

// Writes pairs (box, suppressed box) of a class to `pairs`; returns how many. `order`: the boxes by falling score.
// `begins`: room for count + 1 numbers.
int64_t MatchClass(const float* boxes, const float* scores, float score_threshold, std::span<const int64_t> order,
                   const MatchedBoxes& sorted, const Context* context, int64_t* begins, int64_t* pairs) {
  const auto count = static_cast<int64_t>(order.size());
  for (int64_t i = 0; i < count; ++i) sorted.sorted.Set(i, boxes + 4 * order[static_cast<size_t>(i)], 0);
  const int64_t kept = SuppressGreedily(sorted, count, count, context);
  // Where the pairs of each kept box begin. Both come by falling score.
  std::fill_n(begins, kept + 1, 0);
  const auto box_of = [&](int64_t number) { return order[static_cast<size_t>(sorted.kept_index[number])]; };
  const auto taken_by = [&](int64_t i) {
    const int64_t number = sorted.taken_by[i];
    return number >= 0 && scores[box_of(number)] > score_threshold ? number : -1;
  };
  for (int64_t i = 0; i < count; ++i) {
    if (taken_by(i) >= 0) ++begins[taken_by(i) + 1];
  }
  for (int64_t k = 0; k < kept; ++k) begins[k + 1] += begins[k];
  const int64_t found = begins[kept];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = taken_by(i);
    if (number < 0) continue;
    int64_t* const pair = pairs + 2 * begins[number]++;
    pair[0] = box_of(number);
    pair[1] = order[static_cast<size_t>(i)];
  }
  return found;
}

Status NmsMatchCpu(const NmsMatch&, const Context& context, Tensor<const float, 3> boxes, Tensor<const float, 3> scores,
                   Tensor<const float, 0> iou_threshold, Tensor<const float, 0> score_threshold,
                   Pending<int64_t, 2> matches) {
  POLYOP_RETURN_IF_ERROR(CheckThresholds(iou_threshold[0], score_threshold[0]));
  const int64_t count = boxes.dim(1), classes = scores.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckOrdered(count));
  const int64_t sets = count == 0 ? 0 : scores.dim(0) * classes;  // a shape without elements may say any number
  const int64_t grain = GrainFor(50.0 * static_cast<double>(count)), tasks = Context::NumTasks(sets, grain);
  const int64_t bytes = (MatchedBoxes::BytesFor(count) + 63) / 64 * 64, numbers = 2 * count + 1;
  const Scratch<int64_t> index = context.Allocate<int64_t>(tasks * numbers);
  const Scratch<char> memory = context.Allocate<char>(tasks * bytes);
  const Scratch<int64_t> pairs = context.Allocate<int64_t>(sets * count * 2);
  const Scratch<int64_t> found = context.Allocate<int64_t>(sets);
  if (!index || !memory || !pairs || !found) return Internal("out of memory: scratch for ", scores.size(), " scores");
  context.ParallelFor(sets, grain, [&](int64_t task, int64_t begin, int64_t end) {
    int64_t* const order = index.data() + task * numbers;
    const std::span<int64_t> places(order, static_cast<size_t>(count));
    const auto sorted = MatchedBoxes::In(memory.data() + task * bytes, count, iou_threshold[0]);
    for (int64_t set = begin; set < end; ++set) {
      SortByFallingScore(scores.data() + set * count, places);
      found[set] =
          MatchClass(boxes.data() + set / classes * count * 4, scores.data() + set * count, score_threshold[0], places,
                     sorted, sets == 1 ? &context : nullptr, order + count, pairs.data() + set * count * 2);
    }
  });
  int64_t rows = 0;
  for (int64_t set = 0; set < sets; ++set) rows += found[set];
  Tensor<int64_t, 2> result;
  POLYOP_RETURN_IF_ERROR(matches.Allocate(rows, &result));
  int64_t* row = result.data();
  for (int64_t set = 0; set < sets; ++set) {
    for (int64_t k = 0; k < found[set]; ++k, row += 4) {
      row[0] = set / classes;
      row[1] = set % classes;
      row[2] = pairs[(set * count + k) * 2];
      row[3] = pairs[(set * count + k) * 2 + 1];
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
POLYOP_CPU_KERNEL(NmsMatch, NmsMatchF32, NmsMatchCpu);
}  // namespace polyop
#endif
