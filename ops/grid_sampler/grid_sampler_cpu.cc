#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/grid_sampler/grid_sampler_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/channel_blocks-inl.h"
#include "core/cubic.h"
#include "core/simd.h"
#include "core/stream-inl.h"
#include "ops/grid_sampler/grid_sampler.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using Interpolation = GridSampler::Interpolation;
using Padding = GridSampler::Padding;
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using VF = hn::Vec<F>;
using VI = hn::Vec<I>;

// What is the same for every sample of an axis.
struct Axis {
  Padding padding;
  bool align_corners;
  int64_t extent;

  VF Last() const { return hn::Set(F(), static_cast<float>(extent - 1)); }
};

// From -1 … 1 to pixels. Not fused, so that exact halves are halves on every instruction set.
HWY_INLINE VF Unnormalize(const Axis& axis, VF x) {
  const F d;
  const VF half = hn::Set(d, 0.5f), up = hn::Add(x, hn::Set(d, 1.0f));
  if (axis.align_corners) return hn::Mul(hn::Mul(up, half), axis.Last());
  return hn::Mul(hn::Sub(hn::Mul(up, hn::Set(d, static_cast<float>(axis.extent))), hn::Set(d, 1.0f)), half);
}

// To a number within 2^24, which converts to an integer safely. With padding zeros, what is no number goes outside.
HWY_INLINE VF Tame(const Axis& axis, VF x) {
  const F d;
  const VF far = hn::Set(d, 16777216.0f);
  if (axis.padding == Padding::kZeros) x = hn::IfThenElse(hn::IsFinite(x), x, hn::Neg(far));
  if (axis.padding == Padding::kBorder) x = hn::IfThenZeroElse(hn::IsNaN(x), x);
  if (axis.padding == Padding::kReflection) x = hn::IfThenElseZero(hn::IsFinite(x), x);
  return hn::Min(hn::Max(x, hn::Neg(far)), far);
}

// Mirrors x at the outer pixels' centres or edges until it is between them.
HWY_INLINE VF Reflect(const Axis& axis, VF x) {
  const F d;
  const float low = axis.align_corners ? 0.0f : -0.5f;
  const float period = 2 * static_cast<float>(axis.align_corners ? axis.extent - 1 : axis.extent);
  if (period == 0) return hn::Zero(d);
  const VF at = hn::Abs(hn::Sub(x, hn::Set(d, low))), p = hn::Set(d, period);
  const VF rest = hn::Sub(at, hn::Mul(hn::Floor(hn::Div(at, p)), p));
  return hn::Add(hn::Min(rest, hn::Sub(p, rest)), hn::Set(d, low));
}

// The padding rule. With zeros, x stays where it is.
HWY_INLINE VF Pad(const Axis& axis, VF x) {
  if (axis.padding == Padding::kZeros) return x;
  if (axis.padding == Padding::kReflection) x = Reflect(axis, x);
  return hn::Min(hn::Max(x, hn::Zero(F())), axis.Last());
}

// A pixel coordinate as a number, -1 where it lies outside.
HWY_INLINE VI PixelIndex(const Axis& axis, VF x) {
  const F d;
  const auto inside = hn::And(hn::Ge(x, hn::Zero(d)), hn::Le(x, axis.Last()));
  return hn::IfThenElse(hn::RebindMask(I(), inside), hn::ConvertTo(I(), x), hn::Set(I(), -1));
}

// CubicWeights of core/cubic.h on vectors.
HWY_INLINE void CubicWeights(VF t, VF weights[4]) {
  const F d;
  const float a = static_cast<float>(kCubicA);
  const VF one = hn::Set(d, 1.0f), s = hn::Sub(one, t);
  const auto near = [&](VF x) HWY_ATTR {
    return hn::MulAdd(hn::Mul(hn::MulAdd(hn::Set(d, a + 2), x, hn::Set(d, -(a + 3))), x), x, one);
  };
  const auto far = [&](VF x) HWY_ATTR {
    x = hn::Add(x, one);
    const VF inner = hn::MulAdd(hn::MulAdd(hn::Set(d, a), x, hn::Set(d, -5 * a)), x, hn::Set(d, 8 * a));
    return hn::MulAdd(inner, x, hn::Set(d, -4 * a));
  };
  weights[0] = far(t);
  weights[1] = near(t);
  weights[2] = near(s);
  weights[3] = far(s);
}

// The pixels of one axis that make a sample.
template <int kPerAxis>
struct AxisTaps {
  VI index[kPerAxis];  // -1: outside
  VF weight[kPerAxis];

  HWY_INLINE void Find(const Axis& axis, VF normalized) {
    const F d;
    const VF one = hn::Set(d, 1.0f);
    VF x = Tame(axis, Unnormalize(axis, normalized));
    if constexpr (kPerAxis == 4) {
      const VF base = hn::Floor(x);
      CubicWeights(hn::Sub(x, base), weight);
      for (int k = 0; k < 4; ++k) {
        index[k] = PixelIndex(axis, Pad(axis, hn::Add(base, hn::Set(d, static_cast<float>(k - 1)))));
      }
      return;
    }
    x = Pad(axis, x);
    if constexpr (kPerAxis == 1) {
      index[0] = PixelIndex(axis, hn::Round(x));
      weight[0] = one;
    } else {
      const VF base = hn::Floor(x);
      VF next = hn::Add(base, one);
      weight[1] = hn::Sub(x, base);
      if (axis.padding != Padding::kZeros) {
        // On the last pixel both taps are that pixel: halves of it, as 0 times infinity would be NaN.
        weight[1] = hn::IfThenElse(hn::Gt(next, axis.Last()), hn::Set(d, 0.5f), weight[1]);
        next = hn::Min(next, axis.Last());
      }
      weight[0] = hn::Sub(one, weight[1]);
      index[0] = PixelIndex(axis, base);
      index[1] = PixelIndex(axis, next);
    }
  }
};

// The taps of a tile of outputs: found once, used by every channel. Tap k of output i is at k * kOutputs + i.
template <int kAxes, int kPerAxis>
struct TapTable {
  static constexpr int kTaps = kPerAxis * kPerAxis * (kAxes == 3 ? kPerAxis : 1);
  static constexpr int64_t kOutputs = 4096 / kTaps;

  int32_t offset[4096];  // in a plane, or `outside`
  float weight[4096];

  /// `grid` has `count` points. Entries up to a full vector behind the last are valid offsets.
  template <class T>
  void Fill(const Axis* axes, const T* grid, int64_t count, int32_t outside);
};

template <int kAxes, int kPerAxis>
template <class T>
void TapTable<kAxes, kPerAxis>::Fill(const Axis* axes, const T* grid, int64_t count, int32_t outside) {
  const F d;
  const I di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const VI height = hn::Set(di, static_cast<int32_t>(axes[1].extent));
  const VI width = hn::Set(di, static_cast<int32_t>(axes[0].extent));
  for (int64_t i = 0; i < count; i += lanes) {
    HWY_ALIGN float at[3][hn::MaxLanes(d)] = {};
    for (int64_t p = 0; p < std::min(lanes, count - i); ++p) {
      for (int a = 0; a < kAxes; ++a) at[a][p] = ToFloat(grid[(i + p) * kAxes + a]);
    }
    AxisTaps<kPerAxis> taps[kAxes];
    for (int a = 0; a < kAxes; ++a) taps[a].Find(axes[a], hn::Load(d, at[a]));
    for (int k = 0; k < kTaps; ++k) {
      const int ix = k % kPerAxis, iy = k / kPerAxis % kPerAxis, iz = k / (kPerAxis * kPerAxis);
      VI row = taps[1].index[iy], any = hn::Or(row, taps[0].index[ix]);
      VF product = hn::Mul(taps[0].weight[ix], taps[1].weight[iy]);
      if constexpr (kAxes == 3) {
        any = hn::Or(any, taps[2].index[iz]);
        row = hn::Add(hn::Mul(taps[2].index[iz], height), row);
        product = hn::Mul(product, taps[2].weight[iz]);
      }
      const VI place = hn::Add(hn::Mul(row, width), taps[0].index[ix]);
      hn::StoreU(hn::IfThenElse(hn::Lt(any, hn::Zero(di)), hn::Set(di, outside), place), di, offset + k * kOutputs + i);
      hn::StoreU(product, d, weight + k * kOutputs + i);
    }
  }
}

// `count` outputs of one plane, of which taps at -1 lie outside.
template <class Table, class T>
void GatherPlane(const float* plane, const Table& table, int64_t count, T* to) {
  const F d;
  const I di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    VF sum = hn::Zero(d);
    for (int k = 0; k < Table::kTaps; ++k) {
      // Outside taps read pixel 0 and drop it, so that a NaN there does not spread.
      const VI offset = hn::LoadU(di, table.offset + k * Table::kOutputs + i);
      const auto inside = hn::RebindMask(d, hn::Ge(offset, hn::Zero(di)));
      const VF pixel = hn::IfThenElseZero(inside, hn::GatherIndex(d, plane, hn::Max(offset, hn::Zero(di))));
      sum = hn::MulAdd(pixel, hn::LoadU(d, table.weight + k * Table::kOutputs + i), sum);
    }
    if (i + lanes <= count) {
      StoreFloat(sum, d, to + i);
    } else {
      StoreFloatN(sum, d, to + i, static_cast<size_t>(count - i));
    }
  }
}

// `count` outputs of up to 16 channels, `stride` apart. A tap is one load of 16 channels; the block has a pixel of
// zeros for those outside.
template <bool kStream, class Table, class T>
void SampleBlock(const float* block, const Table& table, int64_t count, int64_t channels, int64_t stride, T* to) {
  constexpr int64_t kTile = 64;
  HWY_ALIGN float tile[kTile * kBlockChannels];
  for (int64_t first = 0; first < count; first += kTile) {
    const int64_t tile_count = std::min(kTile, count - first);
    for (int64_t i = 0; i < tile_count; ++i) {
      BlockSum sum;
      sum.Fill(0);
      for (int k = 0; k < Table::kTaps; ++k) {
        const int64_t entry = k * Table::kOutputs + first + i;
        sum.Add(block + table.offset[entry] * kBlockChannels, table.weight[entry]);
      }
      sum.Store(1, tile + i * kBlockChannels);
    }
    WriteChannels<kStream>(tile, tile_count, channels, stride, to + first);
  }
}

// A part of a picture's channels, ready to be sampled: `units` blocks of 16 channels, or single planes.
struct Channels {
  const float* data;
  int64_t first, count;
  bool blocks;
  int64_t unit_size;  // floats

  int64_t PerUnit() const { return blocks ? kBlockChannels : 1; }
  int64_t units() const { return (count + PerUnit() - 1) / PerUnit(); }
};

// Copies channels of a picture with the channels of a pixel side by side, and a pixel of zeros behind each block.
template <class T>
void CopyBlocks(const Context& context, const T* picture, int64_t pixels, const Channels& channels, float* to) {
  constexpr int64_t kRun = 4096;  // pixels of one item
  const int64_t runs = (pixels + kRun - 1) / kRun;
  context.ParallelFor(channels.units() * runs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t run = item % runs, first = item / runs * kBlockChannels;
      float* const block = to + item / runs * channels.unit_size;
      if (run == 0) std::fill_n(block + pixels * kBlockChannels, kBlockChannels, 0.0f);
      InterleaveChannels(picture + (channels.first + first) * pixels, std::min(kBlockChannels, channels.count - first),
                         pixels, run * kRun, std::min(pixels, (run + 1) * kRun), block);
    }
  });
}

template <class T>
void WidenPlanes(const Context& context, const T* from, int64_t count, float* to) {
  context.ParallelFor(count, 1 << 14, [&](int64_t begin, int64_t end) HWY_ATTR {
    const F d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes) hn::StoreU(LoadFloat(d, from + i), d, to + i);
    for (; i < end; ++i) to[i] = ToFloat(from[i]);
  });
}

// One picture's grid and output.
template <class T>
struct Outputs {
  const T* grid;
  T* to;
  int64_t points;
  bool stream;  // past the caches, if its type is f32
};

template <int kAxes, int kPerAxis, class T>
void Sample(const Context& context, const Axis* axes, int64_t pixels, const Channels& channels,
            const Outputs<T>& outputs) {
  using Table = TapTable<kAxes, kPerAxis>;
  const int64_t tiles = (outputs.points + Table::kOutputs - 1) / Table::kOutputs, units = channels.units();
  // Few tiles: several tasks share one, each with some of the channels.
  const int64_t parts = std::min(units, (16 + tiles - 1) / tiles), per_part = (units + parts - 1) / parts;
  const double outputs_per_item = static_cast<double>(std::min(outputs.points, Table::kOutputs));
  const double per_output =
      2.0 * Table::kTaps + static_cast<double>(per_part) * (channels.blocks ? 2 : 1) * Table::kTaps;
  context.ParallelFor(tiles * parts, GrainFor(outputs_per_item * per_output), [&](int64_t begin, int64_t end) {
    Table table;
    int64_t filled = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t tile = item / parts, part = item % parts, first = tile * Table::kOutputs;
      const int64_t count = std::min(Table::kOutputs, outputs.points - first);
      if (tile != filled) {
        table.Fill(axes, outputs.grid + first * kAxes, count, channels.blocks ? static_cast<int32_t>(pixels) : -1);
      }
      filled = tile;
      for (int64_t unit = part * per_part; unit < std::min(units, (part + 1) * per_part); ++unit) {
        const float* data = channels.data + unit * channels.unit_size;
        const int64_t channel = unit * channels.PerUnit();
        T* const to = outputs.to + (channels.first + channel) * outputs.points + first;
        if (channels.blocks) {
          const int64_t some = std::min(kBlockChannels, channels.count - channel);
          if constexpr (std::is_same_v<T, float>) {
            if (outputs.stream) {
              SampleBlock<true>(data, table, count, some, outputs.points, to);
              continue;
            }
          }
          SampleBlock<false>(data, table, count, some, outputs.points, to);
        } else {
          GatherPlane(data, table, count, to);
        }
      }
    }
    if (outputs.stream) hwy::FlushStream();
  });
}

template <int kAxes, class T>
void SampleBy(Interpolation interpolation, const Context& context, const Axis* axes, int64_t pixels,
              const Channels& channels, const Outputs<T>& outputs) {
  switch (interpolation) {
    case Interpolation::kNearest: return Sample<kAxes, 1>(context, axes, pixels, channels, outputs);
    case Interpolation::kBilinear: return Sample<kAxes, 2>(context, axes, pixels, channels, outputs);
    case Interpolation::kBicubic:
      if constexpr (kAxes == 2) Sample<kAxes, 4>(context, axes, pixels, channels, outputs);
  }
}

// How many of the channels are sampled from blocks. The rest is gathered from planes: fewer than 4 channels, or few
// outputs of a large picture, do not pay for the copy.
int64_t ChannelsInBlocks(int64_t channels, int64_t pixels, int64_t points, int64_t taps, int64_t max_floats) {
  if (points * taps * 2 < pixels || (pixels + 1) * kBlockChannels > max_floats) return 0;
  return channels % kBlockChannels < 4 ? channels - channels % kBlockChannels : channels;
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
  Axis axes[kAxes];  // x, y, z
  for (int a = 0; a < kAxes; ++a) {
    const int64_t extent = input.dim(kAxes + 1 - a);
    axes[a] = {op.padding_mode, op.align_corners, extent};
    if (extent > 0 && pixels > (INT32_MAX - 1) / extent) {
      return InvalidArgument("'input' has shape ", ToString(input.shape()), ": pixels of a plane must fit 32 bits");
    }
    pixels *= extent;
    points *= output.dim(2 + a);
  }
  if (pixels == 0) {
    return InvalidArgument("'input' has shape ", ToString(input.shape()), ": a plane without pixels cannot be sampled");
  }

  constexpr int64_t kMaxFloats = 1 << 24;  // of copied channels at a time
  const int64_t per_axis = op.interpolation_mode == Interpolation::kNearest ? 1 : bicubic ? 4 : 2;
  const int64_t taps = per_axis * per_axis * (kAxes == 3 ? per_axis : 1), channels = input.dim(1);
  const int64_t in_blocks = ChannelsInBlocks(channels, pixels, points, taps, kMaxFloats);
  const int64_t block_size = (pixels + 1) * kBlockChannels;
  const int64_t block_step = std::max<int64_t>(1, kMaxFloats / block_size) * kBlockChannels;
  const int64_t plane_step = std::is_same_v<T, float> ? channels : std::max<int64_t>(1, kMaxFloats / pixels);
  const int64_t copied_blocks = (std::min(in_blocks, block_step) + kBlockChannels - 1) / kBlockChannels;
  const int64_t copied_planes = std::is_same_v<T, float> ? 0 : std::min(channels - in_blocks, plane_step);
  const Scratch<float> copy = context.Allocate<float>(std::max(copied_blocks * block_size, copied_planes * pixels));
  if (!copy) return Internal("out of memory: scratch for 'input' of shape ", ToString(input.shape()));

  const int64_t row_bytes = points * static_cast<int64_t>(sizeof(T));
  const bool stream = ShouldStream(output.data(), row_bytes, output.size() / points);
  for (int64_t n = 0; n < input.dim(0); ++n) {
    const T* picture = input.data() + n * channels * pixels;
    const Outputs<T> outputs = {grid.data() + n * points * kAxes, output.data() + n * channels * points, points,
                                stream};
    for (int64_t first = 0; first < in_blocks; first += block_step) {
      const Channels part = {copy.data(), first, std::min(block_step, in_blocks - first), true, block_size};
      CopyBlocks(context, picture, pixels, part, copy.data());
      SampleBy<kAxes>(op.interpolation_mode, context, axes, pixels, part, outputs);
    }
    for (int64_t first = in_blocks; first < channels; first += plane_step) {
      Channels part = {copy.data(), first, std::min(plane_step, channels - first), false, pixels};
      if constexpr (std::is_same_v<T, float>) {
        part.data = picture + first * pixels;
      } else {
        WidenPlanes(context, picture + first * pixels, part.count * pixels, copy.data());
      }
      SampleBy<kAxes>(op.interpolation_mode, context, axes, pixels, part, outputs);
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
