#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/grid_sampler/grid_sampler_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/cubic.h"
#include "core/simd.h"
#include "ops/grid_sampler/grid_sampler.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using Interpolation = GridSampler::Interpolation;

// Outputs are made in batches: their taps are found once and serve every channel.
constexpr int64_t kBatch = 16384;

// The pixels of one axis that make a sample, at most four. An index of -1 lies outside.
struct AxisTaps {
  int32_t index[4] = {-1, -1, -1, -1};
  float weight[4] = {};
};

AxisTaps FindTaps(const GridSampler& op, float normalized, int64_t extent) {
  constexpr float kFar = 16777216.0f;  // 2^24: beyond it a float has no fraction left
  AxisTaps taps;
  float x = Unnormalize(normalized, extent, op.align_corners);
  if (op.padding_mode == GridPadding::kZeros && !std::isfinite(x)) return taps;
  if (std::isnan(x) || (std::isinf(x) && op.padding_mode == GridPadding::kReflection)) x = 0;
  x = std::clamp(x, -kFar, kFar);
  const auto set = [&](int k, float index, float weight) {
    // A padded coordinate on the last pixel has its right neighbour outside, with weight 0: gathers are not masked
    // then.
    if (op.padding_mode != GridPadding::kZeros) index = std::min(index, static_cast<float>(extent - 1));
    taps.index[k] = index >= 0 && index < static_cast<float>(extent) ? static_cast<int32_t>(index) : -1;
    taps.weight[k] = weight;
  };
  if (op.interpolation_mode == Interpolation::kBicubic) {
    const float base = std::floor(x);
    float weights[4];
    CubicWeights(x - base, weights);
    for (int k = 0; k < 4; ++k)
      set(k, Pad(base - 1 + static_cast<float>(k), extent, op.padding_mode, op.align_corners), weights[k]);
    return taps;
  }
  x = Pad(x, extent, op.padding_mode, op.align_corners);
  if (op.interpolation_mode == Interpolation::kNearest) {
    set(0, std::nearbyint(x), 1);
  } else {
    const float base = std::floor(x);
    set(0, base, base + 1 - x);
    set(1, base + 1, x - base);
  }
  return taps;
}

// Tap k of output i of a batch: the pixel's offset in a plane (-1: outside) and its weight.
struct TapTable {
  int32_t* offset;
  float* weight;
  static constexpr int64_t kPad = 64;
  int32_t* Offset(int k) const { return offset + k * (kBatch + kPad); }
  float* Weight(int k) const { return weight + k * (kBatch + kPad); }
};

template <int kAxes>
void FillTaps(const GridSampler& op, const float* at, const int64_t* extents, int per_axis, int64_t i,
              const TapTable& table) {
  AxisTaps axis[3];
  for (int a = 0; a < kAxes; ++a) axis[a] = FindTaps(op, at[a], extents[kAxes - 1 - a]);  // x is the last extent
  if (kAxes == 2) {
    axis[2].index[0] = 0;
    axis[2].weight[0] = 1;
  }
  int k = 0;
  for (int z = 0; z < (kAxes == 3 ? per_axis : 1); ++z) {
    for (int y = 0; y < per_axis; ++y) {
      for (int x = 0; x < per_axis; ++x, ++k) {
        const int32_t iz = axis[2].index[z], iy = axis[1].index[y], ix = axis[0].index[x];
        const bool inside = (iz | iy | ix) >= 0;
        const auto height = static_cast<int32_t>(extents[kAxes - 2]), width = static_cast<int32_t>(extents[kAxes - 1]);
        table.Offset(k)[i] = inside ? (iz * height + iy) * width + ix : -1;
        table.Weight(k)[i] = axis[2].weight[z] * axis[1].weight[y] * axis[0].weight[x];
      }
    }
  }
}

// Outputs [begin, end) of one plane. kMasked: some taps may lie outside.
template <int kTaps, bool kMasked, class T>
void SamplePlane(const float* plane, const TapTable& table, int64_t begin, int64_t end, T* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = begin; i < end; i += lanes) {
    auto sum = hn::Zero(d);
    for (int k = 0; k < kTaps; ++k) {
      const auto offset = hn::LoadU(di, table.Offset(k) + i);
      hn::Vec<decltype(d)> pixel;
      if constexpr (kMasked) {
        // Outside taps read pixel 0 and drop it, so that a NaN there does not spread.
        const auto inside = hn::RebindMask(d, hn::Ge(offset, hn::Zero(di)));
        pixel = hn::IfThenElseZero(inside, hn::GatherIndex(d, plane, hn::Max(offset, hn::Zero(di))));
      } else {
        pixel = hn::GatherIndex(d, plane, offset);
      }
      sum = hn::MulAdd(pixel, hn::LoadU(d, table.Weight(k) + i), sum);
    }
    if (i + lanes <= end) {
      StoreFloat(sum, d, to + i);
    } else {
      StoreFloatN(sum, d, to + i, static_cast<size_t>(end - i));
    }
  }
}

template <class T>
using PlaneSampler = void (*)(const float*, const TapTable&, int64_t, int64_t, T*);

template <class T>
PlaneSampler<T> SamplerFor(int taps, bool masked) {
  switch (taps) {
    case 1: return masked ? SamplePlane<1, true, T> : SamplePlane<1, false, T>;
    case 4: return masked ? SamplePlane<4, true, T> : SamplePlane<4, false, T>;
    case 8: return masked ? SamplePlane<8, true, T> : SamplePlane<8, false, T>;
    default: return masked ? SamplePlane<16, true, T> : SamplePlane<16, false, T>;
  }
}

// Planes of other types are widened once: a gather reads floats.
template <class T>
const float* Widen(const Context& context, const T* data, int64_t count, float* to) {
  if constexpr (std::is_same_v<T, float>) {
    return data;
  } else {
    context.ParallelFor(count, 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = ToFloat(data[i]);
    });
    return to;
  }
}

template <class T, int kAxes>
Status GridSamplerCpu(const GridSampler& op, const Context& context, Tensor<const T, kAxes + 2> input,
                      Tensor<const T, kAxes + 2> grid, Tensor<T, kAxes + 2> output) {
  const bool bicubic = op.interpolation_mode == Interpolation::kBicubic;
  if (kAxes == 3 && bicubic) {
    return InvalidArgument(
        "attribute 'interpolation_mode' is bicubic, which exists for 4-D input only; 'input' has shape ",
        ToString(input.shape()));
  }
  if (output.size() == 0) return Status::Ok();
  int64_t pixels = 1, points = 1;
  const int64_t* extents = input.shape().begin() + 2;
  for (int a = 0; a < kAxes; ++a) {
    if (extents[a] > 0 && pixels > INT32_MAX / extents[a]) {
      return InvalidArgument("'input' has shape ", ToString(input.shape()), ": pixels of a plane must fit 32 bits");
    }
    pixels *= extents[a];
    points *= output.dim(2 + a);
  }
  if (pixels == 0) {
    return InvalidArgument("'input' has shape ", ToString(input.shape()), ": a plane without pixels cannot be sampled");
  }
  const int per_axis = op.interpolation_mode == Interpolation::kNearest ? 1 : bicubic ? 4 : 2;
  const int taps = per_axis * per_axis * (kAxes == 3 ? per_axis : 1);
  const int64_t channels = input.dim(1), planes = input.dim(0) * channels;
  const Scratch<int32_t> offsets = context.Allocate<int32_t>(taps * (kBatch + TapTable::kPad));
  const Scratch<float> weights = context.Allocate<float>(taps * (kBatch + TapTable::kPad));
  const Scratch<float> wide = context.Allocate<float>(std::is_same_v<T, float> ? 0 : planes * pixels);
  if (!offsets || !weights || !wide) return Internal("out of memory: scratch for ", ToString(input.shape()));
  std::fill_n(offsets.data(), offsets.size(), 0);
  const TapTable table{offsets.data(), weights.data()};
  const float* data = Widen(context, input.data(), planes * pixels, wide.data());
  const PlaneSampler<T> sample = SamplerFor<T>(taps, op.padding_mode == GridPadding::kZeros);

  constexpr int64_t kRun = 2048;  // outputs of one item
  for (int64_t n = 0; n < input.dim(0); ++n) {
    for (int64_t first = 0; first < points; first += kBatch) {
      const int64_t count = std::min(kBatch, points - first), runs = (count + kRun - 1) / kRun;
      context.ParallelFor(count, 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          float at[kAxes];
          for (int a = 0; a < kAxes; ++a) at[a] = ToFloat(grid[(n * points + first + i) * kAxes + a]);
          FillTaps<kAxes>(op, at, extents, per_axis, i, table);
        }
      });
      const int64_t grain = GrainFor(static_cast<double>(std::min(count, kRun) * taps) * 0.4);
      context.ParallelFor(channels * runs, grain, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t plane = n * channels + item / runs, run = item % runs;
          sample(data + plane * pixels, table, run * kRun, std::min(count, (run + 1) * kRun),
                 output.data() + plane * points + first);
        }
      });
    }
  }
  return Status::Ok();
}

template <class T>
Status GridSampler2d(const GridSampler& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 4> grid,
                     Tensor<T, 4> output) {
  return GridSamplerCpu<T, 2>(op, context, input, grid, output);
}
template <class T>
Status GridSampler3d(const GridSampler& op, const Context& context, Tensor<const T, 5> input, Tensor<const T, 5> grid,
                     Tensor<T, 5> output) {
  return GridSamplerCpu<T, 3>(op, context, input, grid, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(GridSampler, GridSampler2dF32, GridSampler2d<float>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler2dF16, GridSampler2d<Half>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler2dBF16, GridSampler2d<BFloat16>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler3dF32, GridSampler3d<float>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler3dF16, GridSampler3d<Half>);
POLYOP_CPU_KERNEL(GridSampler, GridSampler3dBF16, GridSampler3d<BFloat16>);
}  // namespace polyop
#endif
