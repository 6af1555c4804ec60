// SPDX-License-Identifier: Apache-2.0
#include "core/words.h"
#include "ops/boxes3d/box3d_cuda.h"
#include "ops/boxes3d/roipoint_pool3d/roipoint_pool3d.h"

namespace polyop {
namespace {

// Each thread block finds the points of one box; then each thread copies one element.
template <class T>
Status RoipointPool3dCuda(const RoipointPool3d& op, const CudaContext& cuda, Tensor<const T, 3> points,
                          Tensor<const T, 3> features, Tensor<const T, 3> boxes, Tensor<T, 4> pooled,
                          Tensor<int32_t, 2> empty) {
  using Word = WordOf<T>;
  const int64_t count = points.dim(1), channels = features.dim(2), rows = op.num_sampled_points;
  const int64_t all = boxes.dim(0) * boxes.dim(1);
  const T *const from_points = points.data(), *const from_boxes = boxes.data();
  int32_t* const found = cuda.Allocate<int32_t>(all * rows);
  int32_t* const number = cuda.Allocate<int32_t>(all);
  int32_t* const to_empty = empty.data();
  const Divider each(boxes.dim(1));
  POLYOP_RETURN_IF_ERROR(
      ForBlocks(cuda, all, kThreadsPerBlock, PointsInside::kSharedBytes, [=] POLYOP_DEVICE(Block& block) {
        PointsInside search(block);
        const int64_t box = block.index;
        int64_t total = 0;
        search.ForEachRound(Box3d::OfBottom(from_boxes + 7 * box), from_points + 3 * count * each.Quotient(box), count,
                            rows, [&](const int32_t* inside, int32_t num_inside) {
                              block.ForThreads([&](int t) {
                                for (int64_t k = t; k < num_inside && total + k < rows; k += kThreadsPerBlock) {
                                  found[box * rows + total + k] = inside[k];
                                }
                              });
                              total += num_inside;
                              return total < rows;
                            });
        block.ForThreads([&](int t) {
          if (t != 0) return;
          number[box] = static_cast<int32_t>(total < rows ? total : rows);
          to_empty[box] = total == 0;
        });
      }));
  const auto* const coordinates = reinterpret_cast<const Word*>(from_points);
  const auto* const from = reinterpret_cast<const Word*>(features.data());
  auto* const to = reinterpret_cast<Word*>(pooled.data());
  const Divider by_width(3 + channels), by_rows(rows);
  return ForEach(cuda, pooled.size(), [=] POLYOP_DEVICE(int64_t i) {
    int64_t k, c;
    const int64_t box = by_rows.Split(by_width.Split(i, &c), &k);
    Word word{0};
    if (number[box] > 0) {
      const int64_t point = each.Quotient(box) * count + found[box * rows + k % number[box]];
      word = c < 3 ? coordinates[3 * point + c] : from[channels * point + c - 3];
    }
    to[i] = word;
  });
}

POLYOP_CUDA_KERNELS(RoipointPool3d, RoipointPool3dCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
