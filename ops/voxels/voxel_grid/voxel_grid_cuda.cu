// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/block_reduce.h"
#include "ops/voxels/voxel_grid/voxel_grid.h"

namespace polyop {
namespace {

constexpr int64_t kNoVoxel = INT64_MIN;
constexpr int kParts = 256;  // thread blocks that compute the bounds of one dimension

struct Axis {
  float start, size;
  int64_t stride;  // 0: the grid is invalid
};

struct Bounds {
  float low, high;
};

POLYOP_HD bool Multiply(int64_t a, int64_t b, int64_t* product) {
  const __int128 wide = static_cast<__int128>(a) * b;
  *product = static_cast<int64_t>(wide);
  return wide == *product;
}

// Returns the number of voxels of the axis, or 0 if it does not fit in 64 bits or the axis is invalid.
POLYOP_HD int64_t VoxelsOf(float low, float high, float size) {
  if (!(size > 0) || !std::isfinite(size) || !std::isfinite(low) || !std::isfinite(high) || high < low) return 0;
  const float quotient = (high - low) / size;
  return quotient < 0x1p62f ? static_cast<int64_t>(quotient) + 1 : 0;
}

template <class T>
POLYOP_HD int64_t VoxelOf(const T* point, const Axis* axes, int64_t dims) {
  int64_t voxel = 0;
  for (int64_t d = 0; d < dims; ++d) {
    const float quotient = (ToFloat(point[d]) - axes[d].start) / axes[d].size;
    int64_t step = 0;
    if (axes[d].stride == 0 || !(quotient > -0x1p63f && quotient < 0x1p63f)) return kNoVoxel;
    if (!Multiply(static_cast<int64_t>(quotient), axes[d].stride, &step)) return kNoVoxel;
    const __int128 sum = static_cast<__int128>(voxel) + step;
    voxel = static_cast<int64_t>(sum);
    if (sum != voxel) return kNoVoxel;
  }
  return voxel;
}

// Computes partial bounds of every dimension, then the axes, then the voxels of the points. If size, start or end are
// invalid, every point gets kNoVoxel.
template <class T>
Status VoxelGridCuda(const VoxelGrid&, const CudaContext& cuda, Tensor<const T, 2> pos, Tensor<const T, 1> size,
                     std::optional<Tensor<const T, 1>> start, std::optional<Tensor<const T, 1>> end,
                     Tensor<int64_t, 1> cluster) {
  const int64_t points = pos.dim(0), dims = pos.dim(1);
  Axis* const axes = cuda.Allocate<Axis>(dims);
  Bounds* const parts = cuda.Allocate<Bounds>(dims * kParts);
  const T *from = pos.data(), *sizes = size.data(), *starts = start ? start->data() : nullptr,
          *ends = end ? end->data() : nullptr;
  const auto widen = [] POLYOP_DEVICE(const Bounds& a, const Bounds& b) {
    return Bounds{a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
  };
  constexpr int64_t kShared = kThreadsPerBlock * static_cast<int64_t>(sizeof(Bounds));
  POLYOP_RETURN_IF_ERROR(ForBlocks(cuda, dims * kParts, kThreadsPerBlock, kShared, [=] POLYOP_DEVICE(Block& block) {
    Bounds* const bounds = block.Shared<Bounds>(kThreadsPerBlock);
    const int64_t d = block.index / kParts, part = block.index % kParts;
    block.ForThreads([&](int t) {
      Bounds thread_bounds{INFINITY, -INFINITY};
      for (int64_t i = part * kThreadsPerBlock + t; i < points; i += kParts * kThreadsPerBlock) {
        const float x = ToFloat(from[i * dims + d]);
        if (std::isfinite(x)) thread_bounds = widen(thread_bounds, {x, x});
      }
      bounds[t] = thread_bounds;
    });
    ReduceBlock(block, bounds, kThreadsPerBlock, widen);
    block.ForThreads([&](int t) {
      if (t == 0) parts[block.index] = bounds[0];
    });
  }));
  POLYOP_RETURN_IF_ERROR(
      ForBlocks(cuda, 1, kParts, kParts * static_cast<int64_t>(sizeof(Bounds)) + 16, [=] POLYOP_DEVICE(Block& block) {
        Bounds* const bounds = block.Shared<Bounds>(kParts);
        int64_t* const stride = block.Shared<int64_t>(1);
        for (int64_t d = 0; d < dims; ++d) {
          block.ForThreads([&](int t) { bounds[t] = parts[d * kParts + t]; });
          ReduceBlock(block, bounds, kParts, widen);
          block.ForThreads([&](int t) {
            if (t != 0) return;
            float low = starts != nullptr ? ToFloat(starts[d]) : bounds[0].low;
            float high = ends != nullptr ? ToFloat(ends[d]) : bounds[0].high;
            if (starts == nullptr && ends == nullptr && !(low <= high)) low = high = 0;  // no finite coordinate
            if (starts == nullptr && !(low <= high)) low = high;
            if (ends == nullptr && !(high >= low)) high = low;
            const float step = ToFloat(sizes[d]);
            const int64_t before = d == 0 ? 1 : *stride, voxels = VoxelsOf(low, high, step);
            if (voxels == 0 || !Multiply(before, voxels, stride)) *stride = 0;
            axes[d] = {low, step, *stride == 0 ? 0 : before};
          });
        }
        block.ForThreads([&](int t) {  // one invalid axis makes the grid invalid
          if (t == 0 && dims > 0 && *stride == 0) axes[0].stride = 0;
        });
      }));
  int64_t* const to = cluster.data();
  return ForEach(cuda, points, [=] POLYOP_DEVICE(int64_t i) { to[i] = VoxelOf(from + i * dims, axes, dims); });
}

POLYOP_CUDA_KERNELS(VoxelGrid, VoxelGridCuda, float, Half, BFloat16);

}  // namespace
}  // namespace polyop
