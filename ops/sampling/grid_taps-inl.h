// SPDX-License-Identifier: Apache-2.0
// Positions of a grid's samples in the image, and the pixels and weights (taps) of each. Compiled once per instruction
// set; include it from a kernel file.
#if defined(POLYOP_OPS_SAMPLING_GRID_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SAMPLING_GRID_TAPS_INL_H_
#undef POLYOP_OPS_SAMPLING_GRID_TAPS_INL_H_
#else
#define POLYOP_OPS_SAMPLING_GRID_TAPS_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd.h"
#include "ops/resize/cubic.h"
#include "ops/sampling/grid_rule.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

using Padding = GridRule::Padding;
using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using VF = hn::Vec<F>;
using VI = hn::Vec<I>;

using Axis = GridAxis;

HWY_INLINE VF LastPixel(const Axis& axis) { return hn::Set(F(), static_cast<float>(axis.extent - 1)); }

// Converts from [-1, 1] to pixels, without fused operations, so that exact halves are halves on every instruction set.
HWY_INLINE VF Unnormalize(const Axis& axis, VF x) {
  if (axis.in_pixels) return x;
  const F d;
  const VF half = hn::Set(d, 0.5f), up = hn::Add(x, hn::Set(d, 1.0f));
  if (axis.align_corners) return hn::Mul(hn::Mul(up, half), LastPixel(axis));
  return hn::Mul(hn::Sub(hn::Mul(up, hn::Set(d, static_cast<float>(axis.extent))), hn::Set(d, 1.0f)), half);
}

// Clamps to 2^24, so that the conversion to integers is safe. With zero padding, NaN becomes a position outside.
HWY_INLINE VF ClampToSafe(const Axis& axis, VF x) {
  const F d;
  const VF far = hn::Set(d, 16777216.0f);
  if (axis.padding == Padding::kZeros) x = hn::IfThenElse(hn::IsFinite(x), x, hn::Neg(far));
  if (axis.padding == Padding::kBorder) x = hn::IfThenZeroElse(hn::IsNaN(x), x);
  if (axis.padding == Padding::kReflection) x = hn::IfThenElseZero(hn::IsFinite(x), x);
  return hn::Min(hn::Max(x, hn::Neg(far)), far);
}

// Reflects x at the outer pixels' centres or edges until it is between them.
HWY_INLINE VF Reflect(const Axis& axis, VF x) {
  const F d;
  const float low = axis.align_corners ? 0.0f : -0.5f;
  const float period = 2 * static_cast<float>(axis.align_corners ? axis.extent - 1 : axis.extent);
  if (period == 0) return hn::Zero(d);
  const VF at = hn::Abs(hn::Sub(x, hn::Set(d, low))), p = hn::Set(d, period);
  const VF rest = hn::Sub(at, hn::Mul(hn::Floor(hn::Div(at, p)), p));
  return hn::Add(hn::Min(rest, hn::Sub(p, rest)), hn::Set(d, low));
}

// Applies the padding rule. With zero padding, x is unchanged.
HWY_INLINE VF Pad(const Axis& axis, VF x) {
  if (axis.padding == Padding::kZeros) return x;
  if (axis.padding == Padding::kReflection) x = Reflect(axis, x);
  return hn::Min(hn::Max(x, hn::Zero(F())), LastPixel(axis));
}

// Converts a pixel coordinate to an index, or -1 if it is outside.
HWY_INLINE VI PixelIndex(const Axis& axis, VF x) {
  const F d;
  const auto inside = hn::And(hn::Ge(x, hn::Zero(d)), hn::Le(x, LastPixel(axis)));
  return hn::IfThenElse(hn::RebindMask(I(), inside), hn::ConvertTo(I(), x), hn::Set(I(), -1));
}

// Vectorised CubicWeights of ops/resize/cubic.h.
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

// The pixels of a sample along one axis.
template <int kPerAxis>
struct AxisTaps {
  VI index[kPerAxis];  // -1: outside
  VF weight[kPerAxis];

  HWY_INLINE void Find(const Axis& axis, VF normalized) {
    const F d;
    const VF one = hn::Set(d, 1.0f);
    VF x = ClampToSafe(axis, Unnormalize(axis, normalized));
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
        // On the last pixel, both taps are half of that pixel, because 0 times infinity would be NaN.
        weight[1] = hn::IfThenElse(hn::Gt(next, LastPixel(axis)), hn::Set(d, 0.5f), weight[1]);
        next = hn::Min(next, LastPixel(axis));
      }
      weight[0] = hn::Sub(one, weight[1]);
      index[0] = PixelIndex(axis, base);
      index[1] = PixelIndex(axis, next);
    }
  }
};

// A box of pixels: the whole image, or the part of it that a tile of outputs reads.
struct Box {
  int32_t low[3] = {0, 0, 0}, size[3] = {1, 1, 1};  // x, y, z

  int64_t pixels() const { return int64_t{size[0]} * size[1] * size[2]; }
};

// `height` rows of `width` outputs, divided into tiles. The first tile of a row is `cut` columns narrower.
struct Tiling {
  int64_t height, width, tile_height, tile_width, cut = 0;

  int64_t across() const { return (width + cut + tile_width - 1) / tile_width; }
  int64_t count() const { return (height + tile_height - 1) / tile_height * across(); }
};

struct Tile {
  int64_t row, column, height, width;
  int64_t pitch;  // of rows in a table: a multiple of the vector length

  Tile(const Tiling& tiling, int64_t index)
      : row(index / tiling.across() * tiling.tile_height),
        column(std::max<int64_t>(index % tiling.across() * tiling.tile_width - tiling.cut, 0)),
        height(std::min(tiling.tile_height, tiling.height - row)),
        width(std::min((index % tiling.across() + 1) * tiling.tile_width - tiling.cut, tiling.width) - column),
        pitch((width + 15) / 16 * 16) {}
};

// Loads a vector of points as one vector per coordinate.
template <int kAxes>
HWY_INLINE void LoadPoints(const float* points, VF at[kAxes]) {
  const F d;
  if constexpr (kAxes == 2) {
    hn::LoadInterleaved2(d, points, at[0], at[1]);
  } else {
    hn::LoadInterleaved3(d, points, at[0], at[1], at[2]);
  }
}

// Calls visit(row, column, taps) for each vector of the tile's outputs.
template <int kAxes, int kPerAxis, class Visit>
HWY_INLINE void FindTaps(const Axis* axes, const float* grid, int64_t width, const Tile& tile, const Visit& visit) {
  const F d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < tile.height; ++r) {
    const float* const row = grid + ((tile.row + r) * width + tile.column) * kAxes;
    for (int64_t c = 0; c < tile.width; c += lanes) {
      VF at[kAxes];
      if (c + lanes <= tile.width) {
        LoadPoints<kAxes>(row + c * kAxes, at);
      } else {  // repeats the last point
        float last[kAxes * hn::MaxLanes(d)];
        for (int64_t p = 0; p < lanes; ++p) {
          std::copy_n(row + std::min(c + p, tile.width - 1) * kAxes, kAxes, last + p * kAxes);
        }
        LoadPoints<kAxes>(last, at);
      }
      AxisTaps<kPerAxis> taps[kAxes];
      for (int a = 0; a < kAxes; ++a) taps[a].Find(axes[a], at[a]);
      visit(r, c, taps);
    }
  }
}

// Returns the box of pixels that a tile reads; its size is 0 if all are outside.
template <int kAxes, int kPerAxis>
Box BoxOf(const Axis* axes, const float* grid, int64_t width, const Tile& tile) {
  const I di;
  const VI none = hn::Set(di, INT32_MAX);
  VI low[kAxes], high[kAxes];
  for (int a = 0; a < kAxes; ++a) low[a] = none, high[a] = hn::Set(di, -1);
  FindTaps<kAxes, kPerAxis>(axes, grid, width, tile, [&](int64_t, int64_t, const AxisTaps<kPerAxis>* taps) HWY_ATTR {
    for (int a = 0; a < kAxes; ++a) {
      for (const VI index : taps[a].index) {
        high[a] = hn::Max(high[a], index);
        low[a] = hn::Min(low[a], hn::IfThenElse(hn::Lt(index, hn::Zero(di)), none, index));
      }
    }
  });
  Box box;
  for (int a = 0; a < kAxes; ++a) {
    const int32_t last = hn::ReduceMax(di, high[a]);
    box.low[a] = last < 0 ? 0 : hn::ReduceMin(di, low[a]);
    box.size[a] = last + 1 - box.low[a];
  }
  return box;
}

// The taps of a tile of outputs, found once and used by every channel. Tap k of output (r, c) is at k * kOutputs +
// r * pitch + c.
template <int kAxes, int kPerAxis>
struct TapTable {
  static constexpr int kTaps = kPerAxis * kPerAxis * (kAxes == 3 ? kPerAxis : 1);
  static constexpr int64_t kOutputs = 4096 / kTaps;

  int32_t offset[4096];  // index in the box, or `outside`
  float weight[4096];

  /// Fills the table. Requires: the box has all pixels that the tile reads. Padding up to a full vector after each row
  /// has valid offsets, too.
  void Fill(const Axis* axes, const float* grid, int64_t grid_width, const Tile& tile, const Box& box,
            int32_t outside) {
    const F d;
    const I di;
    const VI height = hn::Set(di, box.size[1]), width = hn::Set(di, box.size[0]);
    const auto visit = [&](int64_t r, int64_t c, const AxisTaps<kPerAxis>* taps) HWY_ATTR {
      for (int k = 0; k < kTaps; ++k) {
        const int ix = k % kPerAxis, iy = k / kPerAxis % kPerAxis, iz = k / (kPerAxis * kPerAxis);
        const VI x = taps[0].index[ix], y = taps[1].index[iy];
        VI row = hn::Sub(y, hn::Set(di, box.low[1])), any = hn::Or(y, x);
        VF product = hn::Mul(taps[0].weight[ix], taps[1].weight[iy]);
        if constexpr (kAxes == 3) {
          const VI z = taps[2].index[iz];
          any = hn::Or(any, z);
          row = hn::Add(hn::Mul(hn::Sub(z, hn::Set(di, box.low[2])), height), row);
          product = hn::Mul(product, taps[2].weight[iz]);
        }
        const VI index = hn::Add(hn::Mul(row, width), hn::Sub(x, hn::Set(di, box.low[0])));
        const int64_t entry = k * kOutputs + r * tile.pitch + c;
        hn::StoreU(hn::IfThenElse(hn::Lt(any, hn::Zero(di)), hn::Set(di, outside), index), di, offset + entry);
        hn::StoreU(product, d, weight + entry);
      }
    };
    FindTaps<kAxes, kPerAxis>(axes, grid, grid_width, tile, visit);
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
