// SPDX-License-Identifier: Apache-2.0
// Jacobi's rotations of matrices in lanes. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_LINALG_SVD_JACOBI_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_LINALG_SVD_JACOBI_LANES_INL_H_
#undef POLYOP_OPS_LINALG_SVD_JACOBI_LANES_INL_H_
#else
#define POLYOP_OPS_LINALG_SVD_JACOBI_LANES_INL_H_
#endif

#include "kernels/cpu/simd.h"
#include "ops/linalg/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// A rotation in each lane.
struct LaneRotation {
  Reals cosine, sine, tangent;

  /// (x, y) becomes (cosine x - sine y, sine x + cosine y).
  HWY_INLINE void Apply(Reals& x, Reals& y) const {
    const auto before = x;
    x = hn::MulSub(cosine, x, hn::Mul(sine, y));
    y = hn::MulAdd(sine, before, hn::Mul(cosine, y));
  }
};

/// Returns the rotation that makes the symmetric matrix [[xx, xy], [xy, yy]] diagonal; none in the other lanes.
HWY_INLINE LaneRotation FindRotation(Reals xx, Reals yy, Reals xy, RealMask where) {
  const auto one = RealsOf(1);
  const auto zeta = hn::Div(hn::Sub(yy, xx), hn::Add(xy, xy));
  const auto root = hn::Sqrt(hn::MulAdd(zeta, zeta, one));
  const auto size = hn::IfThenElseZero(where, hn::Div(one, hn::Add(hn::Abs(zeta), root)));
  const auto tangent = hn::CopySign(size, zeta);
  const auto cosine = hn::Div(one, hn::Sqrt(hn::MulAdd(tangent, tangent, one)));
  return {cosine, hn::Mul(cosine, tangent), tangent};
}

HWY_INLINE void RotateRows(const LaneMatrices& a, int64_t p, int64_t q, const LaneRotation& rotation) {
  for (int64_t k = 0; k < a.columns; ++k) {
    auto x = a.Get(p, k), y = a.Get(q, k);
    rotation.Apply(x, y);
    a.Set(p, k, x);
    a.Set(q, k, y);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
