#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nms_match/nms_match_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "families/boxes/boxes-inl.h"
#include "families/boxes/score_order.h"
#include "kernels/cpu/simd.h"
#include "ops/nms_match/nms_match.h"
#include "ops/nms_match/nms_match_values.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

struct Thresholds {
  float iou, score;
};

// The boxes of a class that are left, by falling score.
struct Left {
  BoxArrays boxes;
  int64_t* index;  // in the input
  int64_t count = 0;

  void Move(int64_t from, int64_t to) {
    boxes.Copy(to, boxes, from);
    index[to] = index[from];
  }
};

// Writes pairs (box, suppressed box) of a class to `pairs`; returns how many.
int64_t MatchClass(const float* boxes, const float* scores, const Thresholds& thresholds, Left left, int64_t* pairs) {
  for (int64_t i = 0; i < left.count; ++i) left.boxes.Set(i, boxes + 4 * left.index[i], 0);
  int64_t found = 0, first = 0;
  while (first < left.count) {
    const int64_t best = left.index[first], begin = found;
    int64_t to = first + 1, from = first + 1;  // [from, k) stays: it moves behind what stayed before
    const auto keep_until = [&](int64_t k) {
      for (; from < k; ++from, ++to) {
        if (from != to) left.Move(from, to);
      }
    };
    const auto take = [&](int64_t k) {
      if (!Matches(left.boxes.Overlap(first, left.boxes, k, 0), thresholds.iou)) return false;
      keep_until(k);
      ++from;
      pairs[2 * found] = best;
      pairs[2 * found++ + 1] = left.index[k];
      return false;
    };
    if (thresholds.iou <= 0) {
      for (int64_t k = first + 1; k < left.count; ++k) take(k);
    } else {
      AnySuspect<false>(left.boxes, first, left.boxes, first + 1, left.count, 0, thresholds.iou, take);
    }
    if (found > begin) {
      keep_until(left.count);
      left.count = to;
    }
    if (!(scores[best] > thresholds.score)) found = begin;
    ++first;
  }
  return found;
}

Status NmsMatchCpu(const NmsMatch&, const Context& context, Tensor<const float, 3> boxes, Tensor<const float, 3> scores,
                   Tensor<const float, 0> iou_threshold, Tensor<const float, 0> score_threshold,
                   Pending<int64_t, 2> matches) {
  const Thresholds thresholds{iou_threshold[0], score_threshold[0]};
  POLYOP_RETURN_IF_ERROR(CheckThresholds(thresholds.iou, thresholds.score));
  const int64_t count = boxes.dim(1), classes = scores.dim(1);
  POLYOP_RETURN_IF_ERROR(CheckOrdered(count));
  const int64_t sets = count == 0 ? 0 : scores.dim(0) * classes;  // a shape without elements may say any number
  const int64_t grain = GrainFor(50.0 * static_cast<double>(count)), tasks = Context::NumTasks(sets, grain);
  const int64_t floats = BoxArrays::FloatsFor(count);
  const Scratch<int64_t> index = context.Allocate<int64_t>(tasks * count);
  const Scratch<float> memory = context.Allocate<float>(tasks * floats);
  const Scratch<int64_t> pairs = context.Allocate<int64_t>(sets * count * 2);
  const Scratch<int64_t> found = context.Allocate<int64_t>(sets);
  if (!index || !memory || !pairs || !found) return Internal("out of memory: scratch for ", scores.size(), " scores");
  context.ParallelFor(sets, grain, [&](int64_t task, int64_t begin, int64_t end) {
    for (int64_t set = begin; set < end; ++set) {
      const Left left{BoxArrays::In(memory.data() + task * floats, count), index.data() + task * count, count};
      SortByFallingScore(scores.data() + set * count, {left.index, static_cast<size_t>(count)});
      found[set] = MatchClass(boxes.data() + set / classes * count * 4, scores.data() + set * count, thresholds, left,
                              pairs.data() + set * count * 2);
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
