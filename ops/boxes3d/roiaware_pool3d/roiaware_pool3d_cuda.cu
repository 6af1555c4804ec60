// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "ops/boxes3d/roiaware_pool3d/roiaware_pool3d.h"
#include "ops/boxes3d/roiaware_pool3d/taken_points_cuda.h"

namespace polyop {
namespace {

// Each thread block visits the points of a box by ascending index, in rounds. A round first finds the points that their
// cells can still take; then one thread per cell and channel adds them.
template <class T>
Status RoiawarePool3dCuda(const RoiawarePool3d& op, const CudaContext& cuda, Tensor<const T, 2> rois,
                          Tensor<const T, 2> points, Tensor<const T, 2> features, Tensor<T, 5> pooled) {
  const int64_t count = points.dim(0), channels = features.dim(1), elements = pooled.size();
  const int64_t x = op.out_size[0], y = op.out_size[1], z = op.out_size[2], max_points = op.max_pts_per_voxel - 1;
  const bool average = op.mode == RoiawarePool3d::Mode::kAvg;
  int32_t* const number = cuda.Allocate<int32_t>(rois.dim(0) * x * y * z);
  float* pooling;
  if constexpr (std::is_same_v<T, float>) {
    pooling = pooled.data();
  } else {
    pooling = cuda.Allocate<float>(elements);
  }
  float* const sums = pooling;  // or maxima; NaN if a cell has no maximum yet
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, elements, [=] POLYOP_DEVICE(int64_t i) { sums[i] = average ? 0.0f : NAN; }));
  POLYOP_RETURN_IF_ERROR(ForEach(cuda, rois.dim(0) * x * y * z, [=] POLYOP_DEVICE(int64_t i) { number[i] = 0; }));
  const Divider by_channels(channels);
  const T *const from_rois = rois.data(), *const from_points = points.data(), *const from = features.data();
  POLYOP_RETURN_IF_ERROR(
      ForBlocks(cuda, rois.dim(0), kThreadsPerBlock, TakenPoints::kSharedBytes, [=] POLYOP_DEVICE(Block& block) {
        TakenPoints taken(block);
        const BoxCells cells = BoxCells::Of(from_rois + 7 * block.index, x, y, z);
        float* const to = sums + block.index * x * y * z * channels;
        const auto add = [&](const TakenPoints::Round& round) {
          block.ForThreads([&](int t) {
            round.ForLists(t, channels, by_channels, [&](int64_t cell, int32_t k, int64_t c) {
              float sum = to[cell * channels + c];
              for (; k >= 0; k = round.next[k]) {
                const float v = ToFloat(from[round.points[k] * channels + c]);
                if (average) {
                  sum += v;
                } else if (v == v && !(v <= sum)) {
                  sum = v;
                }
              }
              to[cell * channels + c] = sum;
            });
          });
        };
        taken.ForEachRound(cells, from_points, count, max_points, number + block.index * x * y * z, add);
      }));
  T* const out = pooled.data();
  return ForEach(cuda, elements, [=] POLYOP_DEVICE(int64_t i) {
    const int32_t points_of = number[by_channels.Quotient(i)];
    const float v = sums[i];
    const float result = average ? (points_of > 0 ? v / static_cast<float>(points_of) : 0) : (v == v ? v : 0);
    out[i] = FromFloat<T>(result);
  });
}

POLYOP_CUDA_KERNELS(RoiawarePool3d, RoiawarePool3dCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
