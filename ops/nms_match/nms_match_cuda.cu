#include "families/boxes/suppress_cuda.h"
#include "ops/nms_match/nms_match.h"

namespace polyop {
namespace {

// A block for each set: the boxes come by falling score; one that nobody took takes all later ones that match it.
// A NaN threshold, an error on the CPU, matches nothing.
Status NmsMatchCuda(const NmsMatch&, const CudaContext& cuda, Tensor<const float, 3> boxes,
                    Tensor<const float, 3> scores, Tensor<const float, 0> iou_threshold,
                    Tensor<const float, 0> score_threshold, Pending<int64_t, 2> matches) {
  const int64_t count = boxes.dim(1), classes = scores.dim(1), sets = count == 0 ? 0 : scores.dim(0) * classes;
  Tensor<int64_t, 2> result;
  int64_t* total = nullptr;
  POLYOP_RETURN_IF_ERROR(matches.AllocateMost(scores.size(), &result, &total));
  const float *from = scores.data(), *box_data = boxes.data(), *iou = iou_threshold.data(),
              *least = score_threshold.data();
  SortedSets sorted;
  POLYOP_RETURN_IF_ERROR(SortedSets::Sort(
      cuda, sets, count, [=] POLYOP_HD(int64_t set, int64_t box) { return from[set * count + box]; },
      BoxesAbove{0, true}, count, &sorted));
  // taker[set][rank]: the rank of the box that took this one, or -1; taken[set][rank]: how many it took that count.
  int32_t* const taker = cuda.Allocate<int32_t>(sets * count);
  int64_t* const taken = cuda.Allocate<int64_t>(sets * count);
  int64_t* const before = cuda.Allocate<int64_t>(sets * count);
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, sets * count, [=] POLYOP_DEVICE(int64_t i) {
    taker[i] = -1;
    taken[i] = 0;
  }));
  const Divider by_classes(classes), by_count(count);
  POLYOP_RETURN_IF_ERROR(ForBlocks(cuda, sets, kThreadsPerBlock, 0, [=] POLYOP_DEVICE(Block& block) {
    const int64_t set = block.index;
    const int32_t* const order = sorted.order + set * count;
    const float* const mine = box_data + by_classes.Quotient(set) * count * 4;
    int32_t* const takers = taker + set * count;
    for (int64_t rank = 0; rank < count; ++rank) {
      if (takers[rank] >= 0) continue;  // the same for all threads: only earlier phases wrote it
      block.ForThreads([&](int t) {
        for (int64_t other = rank + 1 + t; other < count; other += kThreadsPerBlock) {
          if (takers[other] < 0 && Matches(BoxOverlap::Of(mine + 4 * order[rank], mine + 4 * order[other], 0), *iou)) {
            takers[other] = static_cast<int32_t>(rank);
          }
        }
      });
    }
  }));
  // How many of the rows of a taker stand before those of a box; few boxes take many, so counting is cheap.
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, sets * count, [=] POLYOP_DEVICE(int64_t i) {
    int64_t rank;
    const int64_t set = by_count.Split(i, &rank);
    if (taker[i] >= 0 || !(from[set * count + sorted.order[i]] > *least)) return;
    int64_t number = 0;
    for (int64_t other = rank + 1; other < count; ++other) number += taker[set * count + other] == rank;
    taken[i] = number;
  }));
  POLYOP_RETURN_IF_ERROR(PrefixSums(cuda, sets * count, [=] POLYOP_HD(int64_t i) { return taken[i]; }, before, total));
  int64_t* const to = result.data();
  return ForEach(cuda, sets * count, [=] POLYOP_DEVICE(int64_t i) {
    int64_t rank;
    const int64_t set = by_count.Split(i, &rank), first = set * count;
    if (taken[i] == 0) return;
    int64_t* row = to + 4 * before[i];
    for (int64_t other = rank + 1; other < count; ++other) {
      if (taker[first + other] != rank) continue;
      row[0] = by_classes.Split(set, &row[1]);
      row[2] = sorted.order[i];
      row[3] = sorted.order[first + other];
      row += 4;
    }
  });
}

POLYOP_CUDA_KERNEL(NmsMatch, NmsMatchF32, NmsMatchCuda);

}  // namespace
}  // namespace polyop
