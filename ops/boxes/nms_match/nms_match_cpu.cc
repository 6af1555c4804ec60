// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/boxes/nms_match/nms_match_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "ops/boxes/nms_match/nms_match.h"
#include "ops/boxes/nms_match/nms_match_values.h"
#include "ops/boxes/score_order.h"
#include "ops/boxes/suppression-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// The boxes of a class by descending score. A box is suppressed by the first kept box that matches it; if there is
// none, it is kept.
struct MatchedBoxes : SortedBoxes {
  static constexpr double kNanosecondsPerPair = 0.3;
  int64_t* suppressor;  // the number of the kept box that suppressed a box
  float threshold;

  static int64_t BytesFor(int64_t capacity) { return 8 * capacity + SortedBoxes::BytesFor(capacity); }
  /// Requires: `memory` has BytesFor(capacity) bytes and is aligned to 8 bytes.
  static MatchedBoxes In(void* memory, int64_t capacity, float threshold) {
    auto* const suppressor = static_cast<int64_t*>(memory);
    return {SortedBoxes::In(suppressor + capacity, capacity, 0), suppressor, threshold};
  }
  bool Overlaps(int64_t candidate, const KeptSubset& among) const {
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    int64_t first = kNone;
    if (threshold <= 0) {  // then the best box suppresses all others
      first = among.range.begin < among.range.end ? among.range.begin : kNone;
    } else {
      AnySuspectIn<false>(candidate, among, threshold, [&](int64_t k) {
        if (k < first && Matches(sorted.Overlap(candidate, kept, k, 0), threshold)) first = k;
        return first == k && among.in_order();
      });
    }
    if (first != kNone) suppressor[candidate] = first;
    return first != kNone;
  }
  void Keep(int64_t candidate, int64_t number) const {
    SortedBoxes::Keep(candidate, number);
    suppressor[candidate] = -1;
  }
};

// Writes pairs (box, suppressed box) of a class to `pairs` and returns their number. `order` lists the boxes by
// descending score. Requires: `begins` has space for count + 1 integers.
int64_t MatchClass(const float* boxes, const float* scores, float score_threshold, std::span<const int64_t> order,
                   const MatchedBoxes& sorted, const Context* context, int64_t* begins, int64_t* pairs) {
  const auto count = static_cast<int64_t>(order.size());
  for (int64_t i = 0; i < count; ++i) sorted.sorted.Set(i, boxes + 4 * order[static_cast<size_t>(i)], 0);
  const int64_t kept = SuppressGreedily(sorted, count, count, context);
  // The first pair of each kept box. Kept and suppressed boxes are ordered by descending score.
  std::fill_n(begins, kept + 1, 0);
  const auto box_of = [&](int64_t number) { return order[static_cast<size_t>(sorted.kept_index[number])]; };
  const auto suppressor = [&](int64_t i) {
    const int64_t number = sorted.suppressor[i];
    return number >= 0 && scores[box_of(number)] > score_threshold ? number : -1;
  };
  for (int64_t i = 0; i < count; ++i) {
    if (suppressor(i) >= 0) ++begins[suppressor(i) + 1];
  }
  for (int64_t k = 0; k < kept; ++k) begins[k + 1] += begins[k];
  const int64_t found = begins[kept];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = suppressor(i);
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
  const int64_t sets = count == 0 ? 0 : scores.dim(0) * classes;  // empty shapes may have arbitrary extents
  const int64_t grain = GrainFor(50.0 * static_cast<double>(count));
  const int64_t bytes = (MatchedBoxes::BytesFor(count) + 63) / 64 * 64;
  const int64_t index_bytes = (2 * count + 1) * static_cast<int64_t>(sizeof(int64_t));
  const Scratch<int64_t> pairs = context.Allocate<int64_t>(sets * count * 2);
  const Scratch<int64_t> found = context.Allocate<int64_t>(sets);
  const auto match = [&](char* memory, int64_t begin, int64_t end) {
    auto* const order = reinterpret_cast<int64_t*>(memory + bytes);
    const std::span<int64_t> order_span(order, static_cast<size_t>(count));
    const auto sorted = MatchedBoxes::In(memory, count, iou_threshold[0]);
    for (int64_t set = begin; set < end; ++set) {
      SortByDescendingScore(scores.data() + set * count, order_span);
      found[set] =
          MatchClass(boxes.data() + set / classes * count * 4, scores.data() + set * count, score_threshold[0],
                     order_span, sorted, sets == 1 ? &context : nullptr, order + count, pairs.data() + set * count * 2);
    }
  };
  if (!pairs || !found || !context.ParallelForWithScratch<char>(sets, grain, bytes + index_bytes, match)) {
    return Internal("out of memory: scratch for ", scores.size(), " scores");
  }
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
POLYOP_CPU_KERNEL(NmsMatch, NmsMatchCpu);
}  // namespace polyop
#endif
