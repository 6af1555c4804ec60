// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/correlation_lookup/correlation_lookup_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup_window.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using Lanes = hn::CappedTag<float, 16>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Lanes()));
constexpr int64_t kTogether = 16;  // pixels whose samples are written as one row

constexpr int64_t RoundUp(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

// Copies columns [first, first + count) of a row to `to`; those outside of the row are 0.
template <class T>
void CopyColumns(const T* row, int64_t columns, int64_t first, int64_t count, float* to) {
  const int64_t begin = std::clamp<int64_t>(-first, 0, count);
  const int64_t end = std::clamp<int64_t>(columns - first, begin, count);
  std::fill_n(to, begin, 0.0f);
  if (begin < end) WidenRow(row + first + begin, end - begin, to + begin);
  std::fill_n(to + end, count - end, 0.0f);
}

// Computes to[x] = (1 - fraction) * a[x] + fraction * b[x] for x in [0, count), rounded up to whole vectors.
void Blend(const float* a, const float* b, float fraction, int64_t count, float* to) {
  const Lanes d;
  const auto before = hn::Set(d, 1 - fraction), after = hn::Set(d, fraction);
  for (int64_t x = 0; x < count; x += kLanes) {
    hn::StoreU(hn::MulAdd(hn::LoadU(d, b + x), after, hn::Mul(hn::LoadU(d, a + x), before)), d, to + x);
  }
}

// Samples the windows of one pixel after the other.
template <class T>
class Sampler {
 public:
  Sampler(const CorrelationLookup& op, const Tensor<const T, 5>& volume)
      : radius_y_(op.radius[0]),
        radius_x_(op.radius[1]),
        rows_(volume.dim(3)),
        columns_(volume.dim(4)),
        pitch_(RoundUp(2 * radius_x_ + 1) + kLanes) {}

  // Returns the floats of scratch that Sample needs.
  int64_t scratch() const { return 4 * pitch_; }

  // Writes the samples of the window around (x, y), kTogether apart.
  void Sample(const T* map, float x, float y, float* scratch, float* to) const {
    const int64_t across = 2 * radius_x_ + 1, down = 2 * radius_y_ + 1;
    LookupWindow horizontal, vertical;
    if (!FindLookupWindow(x, radius_x_, columns_, &horizontal) || !FindLookupWindow(y, radius_y_, rows_, &vertical)) {
      for (int64_t k = 0; k < across * down; ++k) to[k * kTogether] = 0;
      return;
    }
    float *const copy = scratch, *above = scratch + pitch_, *below = above + pitch_, *const blended = below + pitch_;
    for (int64_t j = 0; j <= down; ++j) {
      const int64_t row = vertical.first + j;
      if (row < 0 || row >= rows_) {
        std::fill_n(below, pitch_, 0.0f);
      } else {
        CopyColumns(map + row * columns_, columns_, horizontal.first, across + 1, copy);
        Blend(copy, copy + 1, horizontal.fraction, across, below);
      }
      if (j > 0) {
        Blend(above, below, vertical.fraction, across, blended);
        for (int64_t i = 0; i < across; ++i) to[(i * down + j - 1) * kTogether] = blended[i];
      }
      std::swap(above, below);
    }
  }

 private:
  const int64_t radius_y_, radius_x_, rows_, columns_;
  const int64_t pitch_;  // of rows of the window
};

template <class T>
Status CorrelationLookupCpu(const CorrelationLookup& op, const Context& context, Tensor<const T, 5> volume,
                            Tensor<const float, 4> coords, Tensor<T, 4> output) {
  const int64_t pixels = volume.dim(1) * volume.dim(2), area = volume.dim(3) * volume.dim(4), channels = output.dim(1);
  const int64_t groups = (pixels + kTogether - 1) / kTogether, items = volume.dim(0) * groups;
  const Sampler<T> sampler(op, volume);
  const int64_t grain = GrainFor(static_cast<double>(channels * kTogether)),
                floats = sampler.scratch() + channels * kTogether;
  const Scratch<float> memory = context.Allocate<float>(Context::NumTasks(items, grain) * floats);
  if (!memory) return Internal("out of memory: samples of ", ToString(output.shape()));
  std::fill_n(memory.data(), memory.size(), 0.0f);
  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float *const scratch = memory.data() + task * floats, *const samples = scratch + sampler.scratch();
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / groups, first = item % groups * kTogether, count = std::min(kTogether, pixels - first);
      const float *const x = coords.data() + n * 2 * pixels + first, *const y = x + pixels;
      for (int64_t p = 0; p < count; ++p) {
        sampler.Sample(volume.data() + (n * pixels + first + p) * area, x[p], y[p], scratch, samples + p);
      }
      for (int64_t k = 0; k < channels; ++k) {
        NarrowRow(samples + k * kTogether, count, output.data() + (n * channels + k) * pixels + first);
      }
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(CorrelationLookup, CorrelationLookupCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
