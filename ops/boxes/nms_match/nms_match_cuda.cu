// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/nms_match/nms_match.h"
#include "ops/boxes/suppress_cuda.h"

namespace polyop {
namespace {

// One thread block per set. It visits the boxes by descending score; a box that is not suppressed suppresses all later
// boxes that match it. A NaN threshold, which is an error on the CPU, matches nothing.
Status NmsMatchCuda(const NmsMatch&, const CudaContext& cuda, Tensor<const float, 3> boxes,
                    Tensor<const float, 3> scores, Tensor<const float, 0> iou_threshold,
                    Tensor<const float, 0> score_threshold, Pending<int64_t, 2> matches) {
  const int64_t count = boxes.dim(1), classes = scores.dim(1), sets = count == 0 ? 0 : scores.dim(0) * classes;
  Tensor<int64_t, 2> result;
  int64_t* total = nullptr;
  POLYOP_RETURN_IF_ERROR(matches.AllocateUpperBound(scores.size(), &result, &total));
  const float *from = scores.data(), *box_data = boxes.data(), *iou = iou_threshold.data(),
              *min_score = score_threshold.data();
  SortedSets sorted;
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(
      cuda, sets, count, [=] POLYOP_DEVICE(int64_t set, int64_t box) { return from[set * count + box]; },
      BoxesAbove{0, true}, count, &sorted));
  // suppressor[set][rank] is the rank of the box that suppressed this one, or -1; suppressed[set][rank] is the number
  // of listed boxes that it suppressed.
  int32_t* const suppressor = cuda.Allocate<int32_t>(sets * count);
  int64_t* const suppressed = cuda.Allocate<int64_t>(sets * count);
  int64_t* const before = cuda.Allocate<int64_t>(sets * count);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, sets * count, [=] POLYOP_DEVICE(int64_t i) {
    suppressor[i] = -1;
    suppressed[i] = 0;
  }));
  const Divider by_classes(classes), by_count(count);
  POLYOP_RETURN_IF_ERROR(ForBlocks(cuda, sets, kThreadsPerBlock, 0, [=] POLYOP_DEVICE(Block& block) {
    const int64_t set = block.index;
    const int32_t* const order = sorted.order + set * count;
    const float* const set_boxes = box_data + by_classes.Quotient(set) * count * 4;
    int32_t* const suppressors = suppressor + set * count;
    for (int64_t rank = 0; rank < count; ++rank) {
      if (suppressors[rank] >= 0) continue;  // uniform across threads, because only earlier phases wrote it
      block.ForThreads([&](int t) {
        for (int64_t other = rank + 1 + t; other < count; other += kThreadsPerBlock) {
          if (suppressors[other] < 0 &&
              Matches(BoxOverlap::Of(set_boxes + 4 * order[rank], set_boxes + 4 * order[other], 0), *iou)) {
            suppressors[other] = static_cast<int32_t>(rank);
          }
        }
      });
    }
  }));
  // Counts the boxes that each kept box suppressed. Few boxes suppress many, so counting is cheap.
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, sets * count, [=] POLYOP_DEVICE(int64_t i) {
    int64_t rank;
    const int64_t set = by_count.Split(i, &rank);
    if (suppressor[i] >= 0 || !(from[set * count + sorted.order[i]] > *min_score)) return;
    int64_t number = 0;
    for (int64_t other = rank + 1; other < count; ++other) number += suppressor[set * count + other] == rank;
    suppressed[i] = number;
  }));
  POLYOP_RETURN_IF_ERROR(
      PrefixSums(cuda, sets * count, [=] POLYOP_DEVICE(int64_t i) { return suppressed[i]; }, before, total));
  int64_t* const to = result.data();
  return ForEach(cuda, sets * count, [=] POLYOP_DEVICE(int64_t i) {
    int64_t rank;
    const int64_t set = by_count.Split(i, &rank), first = set * count;
    if (suppressed[i] == 0) return;
    int64_t* row = to + 4 * before[i];
    for (int64_t other = rank + 1; other < count; ++other) {
      if (suppressor[first + other] != rank) continue;
      row[0] = by_classes.Split(set, &row[1]);
      row[2] = sorted.order[i];
      row[3] = sorted.order[first + other];
      row += 4;
    }
  });
}

POLYOP_CUDA_KERNEL(NmsMatch, NmsMatchCuda);

}  // namespace
}  // namespace polyop
