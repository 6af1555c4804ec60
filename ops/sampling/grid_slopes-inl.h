// SPDX-License-Identifier: Apache-2.0
// The derivatives of the taps' weights of a grid's samples. Compiled once per instruction set; include it from a kernel
// file.
#if defined(POLYOP_OPS_SAMPLING_GRID_SLOPES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_SAMPLING_GRID_SLOPES_INL_H_
#undef POLYOP_OPS_SAMPLING_GRID_SLOPES_INL_H_
#else
#define POLYOP_OPS_SAMPLING_GRID_SLOPES_INL_H_
#endif

#include "kernels/cpu/simd.h"
#include "ops/sampling/grid_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Returns the derivative of Pad: 0 where the coordinate is clamped, -1 where it is reflected an odd number of times.
HWY_INLINE VF PadSlope(const Axis& axis, VF x) {
  const F d;
  const VF one = hn::Set(d, 1.0f), zero = hn::Zero(d);
  if (axis.padding == Padding::kZeros) return one;
  VF slope = one;
  if (axis.padding == Padding::kReflection) {
    const float low = axis.align_corners ? 0.0f : -0.5f;
    const float span = static_cast<float>(axis.align_corners ? axis.extent - 1 : axis.extent);
    if (span == 0) return zero;
    const VF from_low = hn::Sub(x, hn::Set(d, low));
    const VF half = hn::Mul(hn::Floor(hn::Div(hn::Abs(from_low), hn::Set(d, span))), hn::Set(d, 0.5f));
    const auto odd = hn::Ne(half, hn::Floor(half));
    slope = hn::IfThenElse(hn::Xor(odd, hn::Lt(from_low, zero)), hn::Neg(one), one);
    x = Reflect(axis, x);
  }
  return hn::IfThenElseZero(hn::And(hn::Gt(x, zero), hn::Lt(x, LastPixel(axis))), slope);
}

// The derivatives of AxisTaps::weight with respect to the grid's coordinate. Those of a coordinate that is not finite
// are 0.
template <int kPerAxis>
struct AxisSlopes {
  VF slope[kPerAxis];

  HWY_INLINE void Find(const Axis& axis, VF normalized) {
    const F d;
    if constexpr (kPerAxis == 1) {
      slope[0] = hn::Zero(d);
      return;
    }
    const VF one = hn::Set(d, 1.0f), x = ClampToSafe(axis, Unnormalize(axis, normalized));
    const float pixels = axis.in_pixels       ? 1.0f
                         : axis.align_corners ? 0.5f * static_cast<float>(axis.extent - 1)
                                              : 0.5f * static_cast<float>(axis.extent);
    const VF step = hn::IfThenElseZero(hn::IsFinite(normalized), hn::Set(d, pixels));
    if constexpr (kPerAxis == 4) {
      const float a = static_cast<float>(kCubicA);
      const VF t = hn::Sub(x, hn::Floor(x)), s = hn::Sub(one, t);
      const auto near = [&](VF u) HWY_ATTR {
        return hn::Mul(hn::MulAdd(hn::Set(d, 3 * (a + 2)), u, hn::Set(d, -2 * (a + 3))), u);
      };
      const auto far = [&](VF u) HWY_ATTR {
        u = hn::Add(u, one);
        return hn::MulAdd(hn::MulAdd(hn::Set(d, 3 * a), u, hn::Set(d, -10 * a)), u, hn::Set(d, 8 * a));
      };
      slope[0] = hn::Mul(far(t), step);
      slope[1] = hn::Mul(near(t), step);
      slope[2] = hn::Neg(hn::Mul(near(s), step));
      slope[3] = hn::Neg(hn::Mul(far(s), step));
    } else if constexpr (kPerAxis == 2) {
      slope[1] = hn::Mul(PadSlope(axis, x), step);
      slope[0] = hn::Neg(slope[1]);
    }
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
