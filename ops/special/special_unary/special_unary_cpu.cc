// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/special/special_unary/special_unary_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/special/lanes-inl.h"
#include "ops/special/special_unary/call_unary.h"
#include "ops/special/special_unary/special_unary.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

namespace special {

// The lanes of a vector of floats, for the elementary functions, which double precision would not make more exact.
struct FloatLanes {
  using Tag = hn::ScalableTag<float>;
  hn::Vec<Tag> v;

  FloatLanes() = default;
  HWY_INLINE explicit FloatLanes(double x) : v(hn::Set(Tag(), static_cast<float>(x))) {}
  HWY_INLINE explicit FloatLanes(hn::Vec<Tag> x) : v(x) {}
};
using F = FloatLanes;
struct FloatMask {
  hn::Mask<F::Tag> m;
};

HWY_INLINE F operator+(F x, F y) { return F(hn::Add(x.v, y.v)); }
HWY_INLINE F operator-(F x, F y) { return F(hn::Sub(x.v, y.v)); }
HWY_INLINE F operator*(F x, F y) { return F(hn::Mul(x.v, y.v)); }
HWY_INLINE F operator/(F x, F y) { return F(hn::Div(x.v, y.v)); }
HWY_INLINE F operator-(F x) { return F(hn::Neg(x.v)); }
HWY_INLINE FloatMask operator<(F x, F y) { return {hn::Lt(x.v, y.v)}; }
HWY_INLINE FloatMask operator>(F x, F y) { return {hn::Gt(x.v, y.v)}; }
HWY_INLINE FloatMask operator==(F x, F y) { return {hn::Eq(x.v, y.v)}; }
HWY_INLINE F Select(FloatMask mask, F yes, F no) { return F(hn::IfThenElse(mask.m, yes.v, no.v)); }
HWY_INLINE F Abs(F x) { return F(hn::Abs(x.v)); }
HWY_INLINE FloatMask operator<=(F x, F y) { return {hn::Le(x.v, y.v)}; }
HWY_INLINE bool Any(FloatMask mask) { return !hn::AllFalse(F::Tag(), mask.m); }
HWY_INLINE F SquareRoot(F x) { return F(hn::Sqrt(x.v)); }
HWY_INLINE F MultiplyAdd(F x, F y, F z) { return F(hn::MulAdd(x.v, y.v, z.v)); }
HWY_INLINE F CopySign(F x, F sign) { return F(hn::CopySign(x.v, sign.v)); }
HWY_INLINE F Log(F x) { return F(hn::Log(F::Tag(), x.v)); }
HWY_INLINE F Exp(F x) {  // of numbers for which Highway's function is defined
  const F::Tag d;
  return F(hn::Exp(d, hn::Min(hn::Max(x.v, hn::Set(d, -104.0f)), hn::Set(d, 100.0f))));
}

static_assert(Arithmetic<FloatLanes>);

template <>
inline constexpr double kNegligible<FloatLanes> = 0x1p-28;

}  // namespace special

using special::SpecialLanes;

POLYOP_DEFINE_CALL_UNARY(HWY_NOINLINE, CallUnaryInLanes)

template <int kCode, class T>
void ComputeElements(const T* from, int64_t begin, int64_t end, T* to) {
  const int64_t lanes = SpecialLanes::Count();
  for (int64_t i = begin; i < end; i += lanes) {
    HWY_ALIGN double buffer[SpecialLanes::kMaxCount];
    const int64_t count = std::min(lanes, end - i);
    if (count == lanes) {  // these loops are vectorized
      for (int64_t k = 0; k < lanes; ++k) buffer[k] = static_cast<double>(from[i + k]);
      CallUnaryInLanes<kCode>(SpecialLanes::Load(buffer)).Store(buffer);
      for (int64_t k = 0; k < lanes; ++k) to[i + k] = static_cast<T>(buffer[k]);
      continue;
    }
    for (int64_t k = 0; k < lanes; ++k) buffer[k] = static_cast<double>(from[i + std::min(k, count - 1)]);
    CallUnaryInLanes<kCode>(SpecialLanes::Load(buffer)).Store(buffer);
    for (int64_t k = 0; k < count; ++k) to[i + k] = static_cast<T>(buffer[k]);
  }
}

using FloatTag = hn::ScalableTag<float>;
using Floats = hn::Vec<FloatTag>;

// Returns c[0] + c[1] t + …, where t is in [-1, 1].
template <int N>
HWY_INLINE Floats FloatPolynomial(const float (&c)[N], Floats t) {
  Floats sum = hn::Set(FloatTag(), c[N - 1]);
  for (int k = N - 2; k >= 0; --k) sum = hn::MulAdd(sum, t, hn::Set(FloatTag(), c[k]));
  return sum;
}

// Returns erfinv(y), whose quotient by y is a polynomial of w = -log(1 - y^2) near 0, and of sqrt(w) elsewhere. The
// relative error of the polynomials, of least squares in Chebyshev's points, is below 1e-7.
HWY_INLINE Floats ErfinvOfFloats(Floats y) {
  constexpr float kCentre[] = {1.623542010e+00f,  7.248912486e-01f,  -5.164349625e-02f, -2.257757242e-02f,
                               1.580325526e-02f,  -3.086874171e-03f, -1.288506225e-03f, 9.788294439e-04f,
                               -1.274586501e-04f, -1.068910034e-04f, 3.986942076e-05f};
  constexpr float kTail[] = {3.134161596e+00f, 9.051913200e-01f,  3.921698800e-03f, -2.388787222e-03f,
                             1.384469625e-03f, -8.799212373e-04f, 4.470481895e-04f, -1.110475632e-04f};
  const FloatTag d;
  const auto one = hn::Set(d, 1.0f), size = hn::Abs(y);
  const auto w = hn::Neg(hn::Log(d, hn::Mul(hn::Sub(one, size), hn::Add(one, size))));
  const auto third = hn::Set(d, 1.0f / 3), six = hn::Set(d, 6.0f);
  auto factor = FloatPolynomial(kCentre, hn::MulSub(hn::Min(w, six), third, one));
  const auto far = hn::Gt(w, six);
  if (!hn::AllFalse(d, far)) {
    const auto root = hn::Sqrt(hn::Max(w, six));  // at most 4, where size is the number below 1
    const auto t = hn::Mul(hn::Sub(root, hn::Set(d, 3.3f)), hn::Set(d, 1 / 0.9f));
    factor = hn::IfThenElse(far, FloatPolynomial(kTail, t), factor);
  }
  const auto outside = hn::IfThenElse(hn::Eq(size, one), hn::CopySign(hn::Inf(d), y), hn::NaN(d));
  return hn::IfThenElse(hn::Lt(size, one), hn::Mul(y, factor), outside);
}

POLYOP_DEFINE_CALL_UNARY(HWY_INLINE, CallUnaryOfFloats)

// Computes a function in single precision: erfinv, a scaled modified Bessel function, or an elementary function but
// Tan, whose quotient needs exact remainders.
template <int kCode>
HWY_NOINLINE void ComputeInFloat(const float* from, int64_t begin, int64_t end, float* to) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto compute = [](Floats x) HWY_ATTR {
    if constexpr (kCode == 4) {
      return ErfinvOfFloats(x);
    } else {
      return CallUnaryOfFloats<kCode>(special::FloatLanes(x)).v;
    }
  };
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) hn::StoreU(compute(hn::LoadU(d, from + i)), d, to + i);
  const auto rest = static_cast<size_t>(end - i);
  if (rest > 0) hn::StoreN(compute(hn::LoadN(d, from + i, rest)), d, to + i, rest);
}

using ComputeFloats = void (*)(const float*, int64_t, int64_t, float*);

// Returns the function in single precision, or null if there is only one in double precision.
ComputeFloats SinglePrecision(int code) {
  switch (code) {
    case 4: return ComputeInFloat<4>;
    case 18: return ComputeInFloat<18>;
    case 19: return ComputeInFloat<19>;
    case 57: return ComputeInFloat<57>;
    case 58: return ComputeInFloat<58>;
    case 59: return ComputeInFloat<59>;
    case 60: return ComputeInFloat<60>;
    case 61: return ComputeInFloat<61>;
    case 62: return ComputeInFloat<62>;
    case 63: return ComputeInFloat<63>;
    default: return nullptr;
  }
}

template <class T>
Status SpecialUnaryCpu(const SpecialUnary& op, const Context& context, Tensor<const T, kAnyRank> x,
                       Tensor<T, kAnyRank> y) {
  // Tasks begin at whole vectors, so that the lanes that share a decision do not depend on the number of threads.
  constexpr int64_t kBlock = 64;
  const T* const from = x.data();
  T* const to = y.data();
  const int64_t count = x.size();
  if constexpr (std::is_same_v<T, float>) {
    if (const ComputeFloats compute = SinglePrecision(op.Code())) {
      context.ParallelFor(count, GrainFor(2), [&](int64_t begin, int64_t end) { compute(from, begin, end, to); });
      return Status::Ok();
    }
  }
  context.ParallelFor((count + kBlock - 1) / kBlock, GrainFor(40.0 * kBlock),
                      [&](int64_t first, int64_t last) HWY_ATTR {
                        const int64_t begin = first * kBlock, end = std::min(last * kBlock, count);
                        WithUnaryFunction(op.Code(), [&](auto function) HWY_ATTR {
                          ComputeElements<decltype(function)::kCode>(from, begin, end, to);
                        });
                      });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNELS(SpecialUnary, SpecialUnaryCpu, float, double);
}  // namespace polyop
#endif
