// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/voxels/voxel_grid/voxel_grid_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/voxels/voxel_grid/voxel_grid.h"
#include "ops/voxels/voxel_grid/voxel_grid_values.h"

#ifndef POLYOP_OPS_VOXEL_GRID_ONCE_
#define POLYOP_OPS_VOXEL_GRID_ONCE_
namespace polyop {
namespace {

// Returns the voxel of one point with arbitrary coordinates.
template <class T>
int64_t VoxelOf(const T* point, const VoxelAxis* axes, int64_t dims) {
  int64_t sum = 0;
  for (int64_t d = 0; d < dims; ++d) {
    const float quotient = (ToFloat(point[d]) - axes[d].start) / axes[d].size;
    if (!(quotient > -0x1p63f && quotient < 0x1p63f)) return kNoVoxel;
    int64_t step = 0;
    if (__builtin_mul_overflow(static_cast<int64_t>(quotient), axes[d].stride, &step)) return kNoVoxel;
    if (__builtin_add_overflow(sum, step, &sum)) return kNoVoxel;
  }
  return sum;
}

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_VOXEL_GRID_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = 512;  // points; a block of four fp32 dimensions stays in the L1 cache
constexpr int kFastDims = 4;

template <class D>
HWY_INLINE void LoadPoints(D d, const float* p, hn::Vec<D> (&x)[1]) {
  x[0] = hn::LoadU(d, p);
}
template <class D>
HWY_INLINE void LoadPoints(D d, const float* p, hn::Vec<D> (&x)[2]) {
  hn::LoadInterleaved2(d, p, x[0], x[1]);
}
template <class D>
HWY_INLINE void LoadPoints(D d, const float* p, hn::Vec<D> (&x)[3]) {
  hn::LoadInterleaved3(d, p, x[0], x[1], x[2]);
}
template <class D>
HWY_INLINE void LoadPoints(D d, const float* p, hn::Vec<D> (&x)[4]) {
  hn::LoadInterleaved4(d, p, x[0], x[1], x[2], x[3]);
}

// Processes grids whose voxel numbers fit in 31 bits, a vector of points at a time. If a point of the vector is outside
// the grid, its points are processed one at a time.
template <int kDims, bool kStream>
void VoxelsOfBlock(const float* pos, int64_t count, const VoxelAxis* axes, int64_t* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Repartition<int64_t, decltype(d)> dl;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  RunWriter<kStream, decltype(dl), int64_t> run(out, count / lanes * lanes);
  int64_t n = 0;
  for (; n + lanes <= count; n += lanes) {
    hn::Vec<decltype(d)> x[kDims];
    LoadPoints(d, pos + n * kDims, x);
    auto sum = hn::Zero(di);
    auto inside = hn::Eq(sum, sum);
    for (int k = 0; k < kDims; ++k) {
      const auto quotient = hn::Div(hn::Sub(x[k], hn::Set(d, axes[k].start)), hn::Set(d, axes[k].size));
      const auto low = hn::Gt(quotient, hn::Set(d, -1.0f));
      const auto high = hn::Lt(quotient, hn::Set(d, static_cast<float>(axes[k].voxels)));
      inside = hn::And(inside, hn::RebindMask(di, hn::And(low, high)));
      const auto step = hn::Mul(hn::ConvertTo(di, quotient), hn::Set(di, static_cast<int32_t>(axes[k].stride)));
      sum = hn::Add(sum, step);
    }
    if (HWY_UNLIKELY(!hn::AllTrue(di, inside))) {
      HWY_ALIGN int64_t voxel[hn::MaxLanes(d)];
      for (int64_t i = 0; i < lanes; ++i) voxel[i] = VoxelOf(pos + (n + i) * kDims, axes, kDims);
      run.Put(hn::Load(dl, voxel));
      run.Put(hn::Load(dl, voxel + hn::Lanes(dl)));
      continue;
    }
    run.Put(hn::PromoteLowerTo(dl, sum));
    run.Put(hn::PromoteUpperTo(dl, sum));
  }
  run.Finish();
  for (; n < count; ++n) out[n] = VoxelOf(pos + n * kDims, axes, kDims);
}

// Returns whether the kernel above is exact: voxel numbers fit in 31 bits, and counts in the 24 bits of a float.
bool IsFast(const VoxelAxis* axes, int64_t dims) {
  if (dims < 1 || dims > kFastDims) return false;
  for (int64_t d = 0; d < dims; ++d) {
    if (axes[d].voxels > (1 << 24) || axes[d].stride * axes[d].voxels > std::numeric_limits<int32_t>::max()) {
      return false;
    }
  }
  return true;
}

template <int kDims>
void VoxelsOfBlock(const float* pos, int64_t count, const VoxelAxis* axes, bool stream, int64_t* out) {
  stream ? VoxelsOfBlock<kDims, true>(pos, count, axes, out) : VoxelsOfBlock<kDims, false>(pos, count, axes, out);
}

template <class T>
void VoxelsOf(const T* pos, int64_t count, const VoxelAxis* axes, int64_t dims, bool fast, bool stream, int64_t* out) {
  if (!fast) {
    for (int64_t n = 0; n < count; ++n) out[n] = VoxelOf(pos + n * dims, axes, dims);
    return;
  }
  HWY_ALIGN float buffer[std::is_same_v<T, float> ? 1 : kBlock * kFastDims];
  for (int64_t n = 0; n < count; n += kBlock) {
    const int64_t size = std::min(kBlock, count - n);
    const float* block = AsFloats(pos + n * dims, size * dims, buffer);
    switch (dims) {
      case 1: VoxelsOfBlock<1>(block, size, axes, stream, out + n); break;
      case 2: VoxelsOfBlock<2>(block, size, axes, stream, out + n); break;
      case 3: VoxelsOfBlock<3>(block, size, axes, stream, out + n); break;
      default: VoxelsOfBlock<4>(block, size, axes, stream, out + n); break;
    }
  }
  if (stream) hwy::FlushStream();
}

// Extends low[kDims] and high[kDims] by the finite coordinates of the points that fill complete vectors, and returns
// the number of these coordinates. Reads memory sequentially: vector k of a round of kDims vectors holds the dimensions
// (k * lanes + lane) % kDims.
template <int kDims, class T>
int64_t WidenBoundsOf(const T* pos, int64_t total, float* low, float* high) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto inf = hn::Inf(d), minus_inf = hn::Neg(inf);
  hn::Vec<decltype(d)> lows[kDims], highs[kDims];
  for (int k = 0; k < kDims; ++k) {
    lows[k] = inf;
    highs[k] = minus_inf;
  }
  int64_t i = 0;
  for (; i + kDims * lanes <= total; i += kDims * lanes) {
    for (int k = 0; k < kDims; ++k) {
      const auto v = LoadFloat(d, pos + i + k * lanes);
      const auto finite = hn::Lt(hn::Abs(v), inf);
      lows[k] = hn::Min(lows[k], hn::IfThenElse(finite, v, inf));
      highs[k] = hn::Max(highs[k], hn::IfThenElse(finite, v, minus_inf));
    }
  }
  HWY_ALIGN float lane[hn::MaxLanes(d)];
  for (int k = 0; k < kDims; ++k) {
    hn::Store(lows[k], d, lane);
    for (int64_t j = 0; j < lanes; ++j) low[(k * lanes + j) % kDims] = std::min(low[(k * lanes + j) % kDims], lane[j]);
    hn::Store(highs[k], d, lane);
    for (int64_t j = 0; j < lanes; ++j)
      high[(k * lanes + j) % kDims] = std::max(high[(k * lanes + j) % kDims], lane[j]);
  }
  return i;
}

template <class T>
void WidenBounds(const T* pos, int64_t points, int64_t dims, float* low, float* high) {
  const int64_t total = points * dims;
  int64_t i = 0;
  switch (dims) {
    case 1: i = WidenBoundsOf<1>(pos, total, low, high); break;
    case 2: i = WidenBoundsOf<2>(pos, total, low, high); break;
    case 3: i = WidenBoundsOf<3>(pos, total, low, high); break;
    case 4: i = WidenBoundsOf<4>(pos, total, low, high); break;
    default: break;
  }
  for (; i < total; ++i) {
    const float v = ToFloat(pos[i]);
    if (!std::isfinite(v)) continue;
    low[i % dims] = std::min(low[i % dims], v);
    high[i % dims] = std::max(high[i % dims], v);
  }
}

// Sets bounds[0 .. dims) and bounds[dims .. 2 * dims) to the minima and maxima of the finite coordinates, or to
// infinity and -infinity where there are none.
template <class T>
Status FindBounds(const Context& context, const Tensor<const T, 2>& pos, float* bounds) {
  const int64_t points = pos.dim(0), dims = pos.dim(1), grain = GrainFor(static_cast<double>(dims));
  const int64_t tasks = Context::NumTasks(points, grain);
  const Scratch<float> partial = context.Allocate<float>(2 * dims * tasks);
  if (!partial) return Internal("out of memory: ", 2 * dims * tasks, " bounds");
  context.ParallelFor(points, grain, [&](int64_t task, int64_t begin, int64_t end) HWY_ATTR {
    float* low = partial.data() + task * 2 * dims;
    for (int64_t d = 0; d < dims; ++d) {
      low[d] = INFINITY;
      low[dims + d] = -INFINITY;
    }
    WidenBounds(pos.data() + begin * dims, end - begin, dims, low, low + dims);
  });
  for (int64_t d = 0; d < dims; ++d) {
    float low = INFINITY, high = -INFINITY;
    for (int64_t t = 0; t < tasks; ++t) {
      low = std::min(low, partial[t * 2 * dims + d]);
      high = std::max(high, partial[t * 2 * dims + dims + d]);
    }
    bounds[d] = low;
    bounds[dims + d] = high;
  }
  return Status::Ok();
}

template <class T>
Status VoxelGridCpu(const VoxelGrid&, const Context& context, Tensor<const T, 2> pos, Tensor<const T, 1> size,
                    std::optional<Tensor<const T, 1>> start, std::optional<Tensor<const T, 1>> end,
                    Tensor<int64_t, 1> cluster) {
  const int64_t points = pos.dim(0), dims = pos.dim(1);
  const Scratch<VoxelAxis> axes = context.Allocate<VoxelAxis>(dims);
  const Scratch<float> bounds = context.Allocate<float>(2 * dims);
  if (!axes || !bounds) return Internal("out of memory: a grid of ", dims, " dimensions");
  if (!start || !end) POLYOP_RETURN_IF_ERROR(FindBounds(context, pos, bounds.data()));
  for (int64_t d = 0; d < dims; ++d) {
    float low = start ? ToFloat((*start)[d]) : bounds[d], high = end ? ToFloat((*end)[d]) : bounds[dims + d];
    if (!start && !end && !(low <= high)) low = high = 0;  // no finite coordinate
    if (!start) low = std::min(low, high);
    if (!end) high = std::max(low, high);
    axes[d] = {low, ToFloat(size[d]), 0, 0};
    bounds[dims + d] = high;
  }
  POLYOP_RETURN_IF_ERROR(CountVoxels(axes.data(), bounds.data() + dims, dims));
  const bool fast = IsFast(axes.data(), dims);
  const bool stream = fast && ShouldStream(points * 8, 1);
  context.ParallelFor((points + kBlock - 1) / kBlock, 32, [&](int64_t first, int64_t last) HWY_ATTR {
    const int64_t begin = first * kBlock, stop = std::min(points, last * kBlock);
    VoxelsOf(pos.data() + begin * dims, stop - begin, axes.data(), dims, fast, stream, cluster.data() + begin);
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(VoxelGrid, VoxelGridCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
