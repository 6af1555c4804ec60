// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/feature_maps/correlation_lookup/correlation_lookup_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup_backward.h"
#include "ops/feature_maps/correlation_lookup/correlation_lookup_window.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kTogether = 16;  // pixels whose gradients are read as one row

// Spreads the gradients of one pixel's samples over the pixels that they read. The maps of pixels are separate, so that
// all elements are written once.
template <class T>
class Spreader {
 public:
  Spreader(const CorrelationLookup& op, const Tensor<const T, 5>& volume)
      : radius_y_(op.radius[0]),
        radius_x_(op.radius[1]),
        rows_(volume.dim(3)),
        columns_(volume.dim(4)),
        pitch_(2 * radius_x_ + 2) {}

  // Returns the floats of scratch that Spread needs.
  int64_t scratch() const { return 2 * pitch_; }

  // Fills the gradient of a map from the gradients of the samples around (x, y), which are kTogether apart.
  void Spread(const float* grads, float x, float y, float* scratch, T* map) const {
    std::fill_n(map, rows_ * columns_, FromFloat<T>(0));
    const int64_t across = 2 * radius_x_ + 1, down = 2 * radius_y_ + 1;
    LookupWindow horizontal, vertical;
    if (!FindLookupWindow(x, radius_x_, columns_, &horizontal)) return;
    if (!FindLookupWindow(y, radius_y_, rows_, &vertical)) return;
    float *above = scratch, *here = scratch + pitch_;
    std::fill_n(above, pitch_, 0.0f);
    const int64_t begin = std::max<int64_t>(0, -horizontal.first), end = std::min(pitch_, columns_ - horizontal.first);
    for (int64_t j = 0; j <= down; ++j) {
      std::fill_n(here, pitch_, 0.0f);
      if (j < down) SpreadRow(grads + j * kTogether, down, horizontal.fraction, across, here);
      const int64_t row = vertical.first + j;
      if (row >= 0 && row < rows_) {
        T* const to = map + row * columns_ + horizontal.first;
        for (int64_t i = begin; i < end; ++i) {
          // The sample above the first row and the one below the last do not exist.
          const float sum = j == 0      ? here[i] * (1 - vertical.fraction)
                            : j == down ? above[i] * vertical.fraction
                                        : above[i] * vertical.fraction + here[i] * (1 - vertical.fraction);
          to[i] = FromFloat<T>(sum);
        }
      }
      std::swap(above, here);
    }
  }

 private:
  static void SpreadRow(const float* grads, int64_t down, float fraction, int64_t across, float* to) {
    for (int64_t i = 0; i < across; ++i) {
      const float grad = grads[i * down * kTogether];
      to[i] += grad * (1 - fraction);
      to[i + 1] = grad * fraction;
    }
  }

  const int64_t radius_y_, radius_x_, rows_, columns_;
  const int64_t pitch_;  // of rows of the window
};

template <class T>
Status CorrelationLookupBackwardCpu(const CorrelationLookupBackward& op, const Context& context,
                                    Tensor<const T, 4> grad_output, Tensor<const T, 5> volume,
                                    Tensor<const float, 4> coords, Tensor<T, 5> grad_volume) {
  const int64_t pixels = volume.dim(1) * volume.dim(2), area = volume.dim(3) * volume.dim(4);
  const int64_t channels = grad_output.dim(1);
  const int64_t groups = (pixels + kTogether - 1) / kTogether, items = volume.dim(0) * groups;
  const Spreader<T> spreader(op, volume);
  const int64_t grain = GrainFor(static_cast<double>(kTogether * (channels + area / 16)));
  const int64_t floats = spreader.scratch() + channels * kTogether;
  const Scratch<float> memory = context.Allocate<float>(Context::NumTasks(items, grain) * floats);
  if (!memory) return Internal("out of memory: gradients of ", ToString(grad_output.shape()));
  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float *const scratch = memory.data() + task * floats, *const grads = scratch + spreader.scratch();
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / groups, first = item % groups * kTogether, count = std::min(kTogether, pixels - first);
      for (int64_t k = 0; k < channels; ++k) {
        WidenRow(grad_output.data() + (n * channels + k) * pixels + first, count, grads + k * kTogether);
      }
      const float *const x = coords.data() + n * 2 * pixels + first, *const y = x + pixels;
      for (int64_t p = 0; p < count; ++p) {
        spreader.Spread(grads + p, x[p], y[p], scratch, grad_volume.data() + (n * pixels + first + p) * area);
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
POLYOP_CPU_KERNELS(CorrelationLookupBackward, CorrelationLookupBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
