// SPDX-License-Identifier: Apache-2.0
// The gradients of sampling images and volumes at points on the GPU.
#pragma once

#include "kernels/cuda/atomic_add.h"
#include "ops/sampling/grid_samples_cuda.h"

namespace polyop {
namespace grid_internal {

// Returns the derivative of Pad: 0 where the coordinate is clamped, -1 where it is reflected an odd number of times.
POLYOP_HD inline float PadSlope(const Axis& axis, float x) {
  if (axis.padding == GridRule::Padding::kZeros) return 1;
  float slope = 1;
  if (axis.padding == GridRule::Padding::kReflection) {
    const float low = axis.align_corners ? 0.0f : -0.5f;
    const float span = static_cast<float>(axis.align_corners ? axis.extent - 1 : axis.extent);
    if (span == 0) return 0;
    const float half = std::floor(std::fabs(x - low) / span) * 0.5f;
    const bool odd = half != std::floor(half);
    slope = odd != (x < low) ? -1.0f : 1.0f;
    x = axis.Reflect(x);
  }
  return x > 0 && x < axis.Last() ? slope : 0;
}

// The taps of a sample along one axis, and the derivatives of their weights with respect to the coordinate. Those of a
// coordinate that is not finite are 0.
template <int kTaps>
struct AxisSlopes : AxisTaps<kTaps> {
  float slope[kTaps];

  POLYOP_HD static AxisSlopes Of(const Axis& axis, float normalized) {
    AxisSlopes taps;
    static_cast<AxisTaps<kTaps>&>(taps) = AxisTaps<kTaps>::Of(axis, normalized);
    const float pixels = axis.in_pixels       ? 1.0f
                         : axis.align_corners ? 0.5f * axis.Last()
                                              : 0.5f * static_cast<float>(axis.extent);
    const float step = std::isfinite(normalized) ? pixels : 0.0f, x = axis.Unnormalize(normalized);
    if constexpr (kTaps == 4) {
      constexpr float a = static_cast<float>(kCubicA);
      const auto near = [](float u) { return (3 * (a + 2) * u - 2 * (a + 3)) * u; };
      const auto far = [](float u) { return (3 * a * u - 10 * a) * u + 8 * a; };
      const float t = x - std::floor(x);
      taps.slope[0] = far(t + 1) * step;
      taps.slope[1] = near(t) * step;
      taps.slope[2] = -near(1 - t) * step;
      taps.slope[3] = -far(2 - t) * step;
    } else if constexpr (kTaps == 1) {
      taps.slope[0] = 0;
    } else {
      taps.slope[1] = PadSlope(axis, x) * step;
      taps.slope[0] = -taps.slope[1];
    }
    return taps;
  }
};

// The axes of a sample. An image has one layer.
template <int kAxes, int kTaps>
struct SampleTaps {
  static constexpr int kLayers = kAxes == 3 ? kTaps : 1;

  AxisSlopes<kTaps> axis[kAxes];

  POLYOP_HD int32_t Layer(int z) const {
    if constexpr (kAxes == 3) return axis[2].index[z];
    return 0;
  }
  POLYOP_HD float LayerWeight(int z) const {
    if constexpr (kAxes == 3) return axis[2].weight[z];
    return 1;
  }
  POLYOP_HD float LayerSlope(int z) const {
    if constexpr (kAxes == 3) return axis[2].slope[z];
    return 0;
  }
};

template <int kAxes>
struct PointGrad {
  float of[kAxes] = {};  // x, y (and z)
};

// Adds the product of a sample's gradient with the derivatives of the sample to the point's.
template <int kAxes, int kTaps, class T>
POLYOP_DEVICE void AddSlopes(const Axes& axes, const SampleTaps<kAxes, kTaps>& taps, const T* plane, float grad,
                             PointGrad<kAxes>* to) {
  if (kTaps == 1) return;
  const AxisSlopes<kTaps>& xs = taps.axis[0];
  const AxisSlopes<kTaps>& ys = taps.axis[1];
  float point[3] = {};
  for (int z = 0; z < taps.kLayers; ++z) {
    for (int y = 0; y < kTaps; ++y) {
      if (taps.Layer(z) < 0 || ys.index[y] < 0) continue;
      const int64_t row = (taps.Layer(z) * axes[1].extent + ys.index[y]) * axes[0].extent;
      const float weight = ys.weight[y] * taps.LayerWeight(z);
      float across = 0, slope = 0;
      for (int x = 0; x < kTaps; ++x) {
        if (xs.index[x] < 0) continue;
        const float value = ToFloat(plane[row + xs.index[x]]);
        across = std::fma(value, xs.weight[x], across);
        slope = std::fma(value, xs.slope[x], slope);
      }
      point[0] = std::fma(slope, weight, point[0]);
      point[1] = std::fma(across, ys.slope[y] * taps.LayerWeight(z), point[1]);
      point[2] = std::fma(across, ys.weight[y] * taps.LayerSlope(z), point[2]);
    }
  }
  for (int a = 0; a < kAxes; ++a) to->of[a] = std::fma(point[a], grad, to->of[a]);
}

// Adds the gradients of samples to their pixels. Each thread finds the taps of a point once for several channels. The
// points are visited for a few channels at a time, whose sums stay in the cache. A pixel whose weight is 0 gets
// nothing.
template <class T, int kAxes, int kTaps, class Points>
Status AddToPixels(const CudaContext& cuda, const Axes& axes, const Tensor<const T, kAxes + 2>& grad_output,
                   const Points& where, const ChannelSums& sums) {
  const int64_t channels = grad_output.dim(1), parts = BlocksFor(sums.count, kChannels);
  const int64_t points = PlanePixels(grad_output.shape());
  const T* const grads = grad_output.data();
  const Divider by_points(points), by_parts(parts);
  return ForEach(cuda, grad_output.dim(0) * parts * points, [=] POLYOP_DEVICE(int64_t i) {
    int64_t point, part;
    const int64_t n = by_parts.Split(by_points.Split(i, &point), &part);
    float at[kAxes];
    where.At(n, point, at);
    AxisTaps<kTaps> taps[kAxes];
    for (int a = 0; a < kAxes; ++a) taps[a] = AxisTaps<kTaps>::Of(axes[a], at[a]);
    const int64_t first = sums.first + part * kChannels, end = sums.first + sums.count;
    const int64_t last = end - first < kChannels ? end : first + kChannels;
    for (int64_t c = first; c < last; ++c) {
      const float grad = ToFloat(grads[(n * channels + c) * by_points.divisor() + point]);
      float* const plane = sums.Plane(n, c);
      for (int z = 0; z < (kAxes == 3 ? kTaps : 1); ++z) {
        const int32_t layer = kAxes == 3 ? taps[kAxes - 1].index[z] : 0;
        const float layer_weight = kAxes == 3 ? taps[kAxes - 1].weight[z] : 1;
        for (int y = 0; y < kTaps; ++y) {
          if (layer < 0 || taps[1].index[y] < 0) continue;
          float* const row = plane + (layer * axes[1].extent + taps[1].index[y]) * axes[0].extent;
          const float weight = taps[1].weight[y] * layer_weight;
          for (int x = 0; x < kTaps; ++x) {
            const float of_pixel = taps[0].weight[x] * weight;
            if (taps[0].index[x] >= 0 && of_pixel != 0) AtomicAdd(row + taps[0].index[x], of_pixel * grad);
          }
        }
      }
    }
  });
}

// Computes the gradients of points. A block finds the taps of some points; then some threads share a point's channels.
// Neighbouring threads have neighbouring points. With many points, a thread has all channels of its point, so that all
// threads read the same channels at about the same time, from the cache.
template <class T, int kAxes, int kTaps, class Points, class Sink>
Status PointGrads(const CudaContext& cuda, const Axes& axes, const Tensor<const T, kAxes + 2>& grad_output,
                  const Tensor<const T, kAxes + 2>& input, const Points& where, const Sink& sink) {
  using Taps = SampleTaps<kAxes, kTaps>;
  using Grad = PointGrad<kAxes>;
  const int64_t images = input.dim(0), channels = input.dim(1), pixels = axes.Pixels();
  const int64_t points = PlanePixels(grad_output.shape());
  const T *const from = input.data(), *const grads = grad_output.data();
  constexpr int64_t kMaxLanes = 8, kManyThreads = int64_t{1} << 18;
  int lanes = 1;
  while (lanes < kMaxLanes && lanes < channels && images * points * lanes < kManyThreads) lanes *= 2;
  const int held = kThreadsPerBlock / lanes;  // points of a block
  const int64_t shared =
      held * static_cast<int64_t>(sizeof(Taps)) + kThreadsPerBlock * static_cast<int64_t>(sizeof(Grad)) + 32;
  const int64_t tiles = BlocksFor(points, held);
  return ForBlocks<kThreadsPerBlock, 4>(
      cuda, images * tiles, kThreadsPerBlock, shared, [=] POLYOP_DEVICE(Block& block) {
        Taps* const taps = block.Shared<Taps>(held);
        Grad* const parts = block.Shared<Grad>(kThreadsPerBlock);
        const int64_t n = block.index / tiles, first = block.index % tiles * held;
        const int64_t rest = points - first, count = rest < held ? rest : held;
        block.ForThreads([&](int t) {
          for (int64_t i = t; i < count * kAxes; i += kThreadsPerBlock) {
            const int64_t axis = i / count, p = i % count;
            float at[kAxes];
            where.At(n, first + p, at);
            taps[p].axis[axis] = AxisSlopes<kTaps>::Of(axes[static_cast<int>(axis)], at[axis]);
          }
        });
        block.ForThreads([&](int t) {
          const int p = t % held;
          Grad grad;
          if (p < count) {
            const Taps of_point = taps[p];
            for (int64_t c = t / held; c < channels; c += lanes) {
              AddSlopes<kAxes, kTaps>(axes, of_point, from + (n * channels + c) * pixels,
                                      ToFloat(grads[(n * channels + c) * points + first + p]), &grad);
            }
          }
          parts[t] = grad;
        });
        block.ForThreads([&](int t) {
          if (t >= count) return;
          Grad total;
          for (int lane = 0; lane < lanes; ++lane) {
            for (int a = 0; a < kAxes; ++a) total.of[a] += parts[lane * held + t].of[a];
          }
          sink.Write(n, first + t, total.of);
        });
      });
}

template <class T, int kAxes, int kTaps, class Points, class Sink>
Status SampleBackward(const GridRule& rule, const CudaContext& cuda, const Tensor<const T, kAxes + 2>& grad_output,
                      const Tensor<const T, kAxes + 2>& input, const Points& where,
                      const std::optional<Tensor<T, kAxes + 2>>& grad_input, bool of_points, const Sink& sink) {
  const Axes axes(rule, input.shape(), Points::kInPixels);
  if (grad_input) {
    POLYOP_RETURN_IF_ERROR(SumAtomically(
        cuda, input.dim(0), input.dim(1), axes.Pixels(), grad_input->data(),
        [&](const ChannelSums& sums) { return AddToPixels<T, kAxes, kTaps>(cuda, axes, grad_output, where, sums); }));
  }
  return of_points ? PointGrads<T, kAxes, kTaps>(cuda, axes, grad_output, input, where, sink) : cuda.Check();
}

}  // namespace grid_internal

/// Computes the gradients of SampleCuda with respect to the input, if it exists, and to the points if `of_points`.
/// `Sink` has
///   POLYOP_DEVICE void Write(int64_t image, int64_t point, const float grad[kAxes]) const;   // of x, y (and z)
template <int kAxes, class T, class Points, class Sink>
Status SampleBackwardCuda(const CudaContext& cuda, const GridRule& rule, const Tensor<const T, kAxes + 2>& grad_output,
                          const Tensor<const T, kAxes + 2>& input, const Points& points,
                          const std::optional<Tensor<T, kAxes + 2>>& grad_input, bool of_points, const Sink& sink) {
  switch (rule.interpolation_mode) {
    case GridRule::Interpolation::kNearest:
      return grid_internal::SampleBackward<T, kAxes, 1>(rule, cuda, grad_output, input, points, grad_input, of_points,
                                                        sink);
    case GridRule::Interpolation::kBilinear:
      return grid_internal::SampleBackward<T, kAxes, 2>(rule, cuda, grad_output, input, points, grad_input, of_points,
                                                        sink);
    case GridRule::Interpolation::kBicubic:
      if constexpr (kAxes == 2) {
        return grid_internal::SampleBackward<T, kAxes, 4>(rule, cuda, grad_output, input, points, grad_input, of_points,
                                                          sink);
      }
  }
  return Internal("unknown interpolation mode");
}

}  // namespace polyop
