// SPDX-License-Identifier: Apache-2.0
// The gradient of pooling in cells on the GPU. The sums are atomic: a point's sum gets one addition per box that holds
// it, at most 4 below, so that neither shared memory nor segments would combine additions. 20,000 points with 64
// channels and 64 boxes that hold some 3,400 are 220,000 additions, 7,000 of a warp's neighbouring channels, below
// 1 us on an H200 (an estimate, as are all of these).
//
// Other parts take longer: each of 64 blocks tests all points in 20 steps of some 1,000 cycles, 11 us (twice for
// averages), and maxima clear and read a 4-byte index for each of the 7 million cells and channels, 57 MB, 12 us at 4.8
// TB/s. The lists of some 50 points by cell are visited in parallel, 2 us; visits of one point after the other would
// wait some 1,000 cycles each, 30 us.
#include "kernels/cuda/atomic_add.h"
#include "ops/boxes3d/roiaware_pool3d/roiaware_pool3d_backward.h"
#include "ops/boxes3d/roiaware_pool3d/taken_points_cuda.h"

namespace polyop {
namespace {

// The tensors of a call, and memory for the cells of some boxes.
template <class T>
struct CellGradients {
  const T *grad, *rois, *points, *features;
  int64_t count, channels, max_points;
  int64_t x, y, z;
  int32_t* taken;    // [boxes, cells]: the number of points that a cell has taken
  int32_t* visited;  // [boxes, cells]: the same in a second visit
  int32_t* largest;  // [boxes, cells, channels]: the first point whose feature is the largest, or -1

  POLYOP_HD int64_t cells() const { return x * y * z; }
};

// Spreads the gradients of the cells' averages over their points: visits the points twice, first to count them.
template <class T>
Status SpreadCellAverages(const CudaContext& cuda, const CellGradients<T>& of, int64_t first, int64_t boxes,
                          const ChannelSums& sums) {
  const Divider by_channels(of.channels);
  return ForBlocks(cuda, boxes, kThreadsPerBlock, TakenPoints::kSharedBytes, [=] POLYOP_DEVICE(Block& block) {
    TakenPoints points(block);
    const BoxCells cells = BoxCells::Of(of.rois + 7 * (first + block.index), of.x, of.y, of.z);
    int32_t* const taken = of.taken + block.index * of.cells();
    const T* const grads = of.grad + (first + block.index) * of.cells() * of.channels;
    const auto add = [&](const TakenPoints::Round& round) {
      block.ForThreads([&](int t) {
        for (int64_t i = t; i < round.count * of.channels; i += kThreadsPerBlock) {
          int64_t c;
          const int64_t k = by_channels.Split(i, &c), cell = round.cells[k];
          if (cell < 0 || !sums.Has(round.points[k])) continue;
          AtomicAdd(sums.Plane(0, round.points[k]) + c,
                    ToFloat(grads[cell * of.channels + c]) / static_cast<float>(taken[cell]));
        }
      });
    };
    points.ForEachRound(cells, of.points, of.count, of.max_points, taken, [](const TakenPoints::Round&) {});
    points.ForEachRound(cells, of.points, of.count, of.max_points, of.visited + block.index * of.cells(), add);
  });
}

// Gives the gradient of each cell and channel to the first of the cell's largest features, ignoring NaN.
template <class T>
Status GiveCellMaxima(const CudaContext& cuda, const CellGradients<T>& of, int64_t first, int64_t boxes,
                      const ChannelSums& sums) {
  const Divider by_channels(of.channels);
  POLYOP_RETURN_IF_ERROR(
      ForBlocks(cuda, boxes, kThreadsPerBlock, TakenPoints::kSharedBytes, [=] POLYOP_DEVICE(Block& block) {
        TakenPoints points(block);
        const BoxCells cells = BoxCells::Of(of.rois + 7 * (first + block.index), of.x, of.y, of.z);
        int32_t* const largest = of.largest + block.index * of.cells() * of.channels;
        const auto find = [&](const TakenPoints::Round& round) {
          block.ForThreads([&](int t) {
            round.ForLists(t, of.channels, by_channels, [&](int64_t cell, int32_t k, int64_t c) {
              int32_t at = largest[cell * of.channels + c];
              float maximum = at < 0 ? 0 : ToFloat(of.features[at * of.channels + c]);
              for (; k >= 0; k = round.next[k]) {
                const float value = ToFloat(of.features[round.points[k] * of.channels + c]);
                if (!(value == value && (at < 0 || value > maximum))) continue;
                at = round.points[k];
                maximum = value;
              }
              largest[cell * of.channels + c] = at;
            });
          });
        };
        points.ForEachRound(cells, of.points, of.count, of.max_points, of.taken + block.index * of.cells(), find);
      }));
  const int64_t cells = of.cells();
  return ForEach(cuda, boxes * cells * of.channels, [=] POLYOP_DEVICE(int64_t i) {
    int64_t c;
    by_channels.Split(i, &c);
    const int64_t point = of.largest[i];
    if (!sums.Has(point)) return;
    AtomicAdd(sums.Plane(0, point) + c, ToFloat(of.grad[first * cells * of.channels + i]));
  });
}

inline Status FillIntegers(const CudaContext& cuda, int32_t* integers, int64_t count, int32_t value) {
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { integers[i] = value; });
}

template <class T>
Status RoiawarePool3dBackwardCuda(const RoiawarePool3dBackward& op, const CudaContext& cuda,
                                  Tensor<const T, 5> grad_pooled, Tensor<const T, 2> rois, Tensor<const T, 2> points,
                                  Tensor<const T, 2> features, Tensor<T, 2> grad_features) {
  constexpr int64_t kMaxIntegers = int64_t{1} << 24;  // in scratch, 64 MiB; more for a single box
  const bool average = op.mode == RoiawarePool3d::Mode::kAvg;
  const int64_t channels = features.dim(1), boxes = rois.dim(0);
  CellGradients<T> of{grad_pooled.data(),
                      rois.data(),
                      points.data(),
                      features.data(),
                      points.dim(0),
                      channels,
                      op.max_pts_per_voxel - 1,
                      op.out_size[0],
                      op.out_size[1],
                      op.out_size[2],
                      nullptr,
                      nullptr,
                      nullptr};
  const int64_t cells = boxes > 0 ? of.cells() : 1;  // without boxes the extents may be huge
  const int64_t each = cells * (average ? 2 : 1 + channels);
  const int64_t at_once = std::clamp<int64_t>(kMaxIntegers / each, 1, std::max<int64_t>(boxes, 1));
  int32_t* const memory = cuda.Allocate<int32_t>(std::min(boxes * each, std::max(kMaxIntegers, each)));
  of.taken = memory;
  of.visited = of.largest = memory + at_once * cells;
  return SumAtomically(cuda, 1, of.count, channels, grad_features.data(), [&](const ChannelSums& sums) {
    for (int64_t first = 0; first < boxes; first += at_once) {
      const int64_t some = std::min(at_once, boxes - first), rest = average ? cells : cells * channels;
      POLYOP_RETURN_IF_ERROR(FillIntegers(cuda, of.taken, some * cells, 0));
      POLYOP_RETURN_IF_ERROR(FillIntegers(cuda, of.largest, some * rest, average ? 0 : -1));
      POLYOP_RETURN_IF_ERROR(average ? SpreadCellAverages(cuda, of, first, some, sums)
                                     : GiveCellMaxima(cuda, of, first, some, sums));
    }
    return Status::Ok();
  });
}

POLYOP_ATOMIC_CUDA_KERNELS(RoiawarePool3dBackward, RoiawarePool3dBackwardCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
