// SPDX-License-Identifier: Apache-2.0
// Special functions of one argument in double precision. R, the type of numbers, is double or the lanes of vectors. The
// header has no include guard, because functions of lanes are compiled once for each instruction set. It is included in
// the namespace `special` that has the operations of R: by numbers.h for double, by lanes-inl.h for SpecialLanes.

/// What the functions need of R in addition to R(double), + - * / and comparisons: functions in R's namespace. A
/// comparison gives a mask, one truth value for each number.
template <class R>
concept Arithmetic = requires(R x) {
  Select(x < x, x, x);  // the second argument where the mask is true, else the third
  Any(x <= x);          // whether the mask is true for some number; functions skip what no number needs
  Abs(x);
  CopySign(x, x);  // the size of the first argument with the sign of the second
  SquareRoot(x);
  MultiplyAdd(x, x, x);  // x y + z, rounded once or twice
  Exp(x);
  Log(x);
};

/// What functions that oscillate, have many poles or have large arguments need in addition.
template <class R>
concept FullArithmetic = Arithmetic<R> && requires(R x, R& sine, R& cosine) {
  Floor(x);
  Round(x);                   // to the nearest integer
  FusedMultiplyAdd(x, x, x);  // x y + z, rounded once
  Log1p(x);
  Sin(x);
  SinCos(x, sine, cosine);
};

/// The coefficients of a series below this part of the sum of all do not count in the precision of R.
template <class R>
inline constexpr double kNegligible = 0;

/// Returns the number of coefficients that count.
template <class R, int N>
constexpr int CountTerms(const double (&c)[N]) {
  double sum = 0;
  for (const double x : c) sum += x < 0 ? -x : x;
  int count = N;
  double rest = 0;
  while (count > 1) {
    rest += c[count - 1] < 0 ? -c[count - 1] : c[count - 1];
    if (rest > sum * kNegligible<R>) break;
    --count;
  }
  return count;
}

/// Returns the sum of the first coefficients times Chebyshev's polynomials of t.
template <int kTerms, Arithmetic R, int N>
POLYOP_HD R Clenshaw(const double (&c)[N], R t) {
  const R twice = t + t;
  R after = R(0.0), last = R(0.0);
  for (int k = kTerms - 1; k > 0; --k) {
    const R next = MultiplyAdd(twice, after, R(c[k]) - last);
    last = after;
    after = next;
  }
  return MultiplyAdd(t, after, R(c[0]) - last);
}

#include "ops/special/coefficients.h"

constexpr double kPi = 3.14159265358979323846, kInfinity = __builtin_huge_val();

/// Returns where x is in [low, high] as a number in [-1, 1]. Clamps x; NaN gives 1.
template <Arithmetic R>
POLYOP_HD R InRange(R x, double low, double high) {
  const R clamped = Select(x < R(low), R(low), Select(x < R(high), x, R(high)));
  return (clamped + clamped - R(high + low)) / R(high - low);
}

template <Arithmetic R>
POLYOP_HD R NotANumber() {
  return R(kInfinity) - R(kInfinity);
}

// ---- the error function ----

/// Returns exp(x^2) erfc(x) of x >= 0.
template <Arithmetic R>
POLYOP_HD R ErfcxAbove(R x) {
  const R large = Select(x < R(1e30), x, R(1e30));
  return ErfcxSeries((large - R(4)) / (large + R(4))) / (R(1) + x + x);
}

template <Arithmetic R>
POLYOP_HD R Erfcx(R x) {
  const R above = ErfcxAbove(Abs(x));
  return Select(x >= R(0), above, Select(x < R(0), R(2) * Exp(x * x) - above, x));
}

template <Arithmetic R>
POLYOP_HD R Erfc(R x) {
  const R above = Exp(-(x * x)) * ErfcxAbove(Abs(x));
  return Select(x >= R(0), above, Select(x < R(0), R(2) - above, x));
}

template <Arithmetic R>
POLYOP_HD R Erf(R x) {
  const R size = Abs(x);
  const R near = x * ErfSeries(InRange(x * x, 0, 1));
  const R far = CopySign(R(1) - Exp(-(x * x)) * ErfcxAbove(size), x);
  return Select(size <= R(1), near, Select(size > R(1), far, x));
}

/// Returns erfinv(y) with w = -log(1 - y^2).
template <Arithmetic R>
POLYOP_HD R ErfInverse(R y, R w) {
  R factor = R(0);
  if (Any(w <= R(6))) factor = ErfinvCentreSeries(InRange(w, 0, 6));
  if (Any(w > R(6))) {
    const R root = SquareRoot(w);
    R tail = ErfinvTailSeries(InRange(root, 2.4, 6.2));
    if (Any(root > R(6.2))) tail = Select(root <= R(6.2), tail, ErfinvFarSeries(InRange(root, 6.2, 27.5)));
    factor = Select(w <= R(6), factor, tail);
  }
  const R outside = Select(Abs(y) == R(1), y * R(kInfinity), NotANumber<R>());
  return Select(Abs(y) < R(1), y * factor, outside);
}

template <Arithmetic R>
POLYOP_HD R Erfinv(R y) {
  return ErfInverse(y, -Log((R(1) - y) * (R(1) + y)));
}

template <Arithmetic R>
POLYOP_HD R Ndtri(R p) {
  R y = p + p - R(1);
  // For a tiny p this rounds to -1.
  y = Select(p > R(0), Select(y == R(-1), R(-0x1.fffffffffffffp-1), y), y);
  const R result = ErfInverse(y, -Log(R(4) * p * (R(1) - p))) * R(1.41421356237309504880);
  return Select(p < R(0), NotANumber<R>(), result);
}

template <FullArithmetic R>
POLYOP_HD R LogNdtr(R x) {
  const R t = x * R(0.70710678118654752440), above = ErfcxAbove(Abs(t)) * R(0.5);
  const R low = Log(above) - t * t, high = Log1p(-(above * Exp(-(t * t))));
  return Select(x < R(0), low, Select(x >= R(0), high, x));
}

// ---- gamma ----

/// Returns log(1 + x), exact for small x too. Requires: x is finite, and above -1.
template <Arithmetic R>
POLYOP_HD R LogOnePlus(R x) {
  const R sum = R(1) + x;
  return Select(sum == R(1), x, Log(sum) * x / (sum - R(1)));
}

/// Returns the number whose difference from log(product) is log gamma of x > 0.
template <Arithmetic R>
POLYOP_HD R StirlingOf(R x, R& product) {
  constexpr double kFactors[] = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                                 1.0 / 1188, -691.0 / 360360.0, 1.0 / 156,  -3617.0 / 122400.0};
  constexpr int kShift = 7;
  const auto far = x > R(1e6);  // beyond this the product would overflow, and is not needed
  const R first = Select(far, R(1), x);
  product = first;
  for (int k = 1; k < kShift; ++k) product = product * (first + R(static_cast<double>(k)));
  product = Select(far, R(1), product);
  const R z = Select(far, x, x + R(kShift)), inverse = R(1) / z, square = inverse * inverse;
  R sum = R(kFactors[7]);
  for (int k = 6; k >= 0; --k) sum = MultiplyAdd(sum, square, R(kFactors[k]));
  return MultiplyAdd(z - R(0.5), Log(z), MultiplyAdd(inverse, sum, R(0.91893853320467274178) - z));
}

/// Returns log gamma of x > 0.
template <Arithmetic R>
POLYOP_HD R LogGammaAbove(R x) {
  R product = x;
  const R stirling = StirlingOf(x, product);
  return stirling - Log(product);
}

/// Returns sin(pi x), |x| <= 1/2, by the power series.
template <Arithmetic R>
POLYOP_HD R SineOfHalfTurn(R x) {
  const R angle = R(kPi) * x, square = angle * angle;
  R sum = R(1);
  for (int k = 10; k > 0; --k) sum = MultiplyAdd(sum * square, R(-1.0 / (2 * k * (2 * k + 1))), R(1));
  return angle * sum;
}

/// Returns log gamma of 2 + t, |t| <= 0.5.
template <Arithmetic R>
POLYOP_HD R LogGammaOfTwoPlus(R t) {
  return t * LogGammaNearTwoSeries(InRange(t, -0.5, 0.5));
}

/// Returns log gamma of 1 + t, |t| <= 0.5.
template <Arithmetic R>
POLYOP_HD R LogGammaOfOnePlus(R t) {
  return LogGammaOfTwoPlus(t) - LogOnePlus(t);
}

/// Returns log gamma of x in [0.5, 2.5], without cancellation near its zeros, 1 and 2.
template <Arithmetic R>
POLYOP_HD R LogGammaNearZeros(R x) {
  const auto first = x < R(1.5);
  const R result = LogGammaOfTwoPlus(x - Select(first, R(1), R(2)));
  return Select(first, result - LogOnePlus(Select(first, x - R(1), R(0))), result);
}

template <FullArithmetic R>
POLYOP_HD R LogGamma(R x) {
  const auto below = x < R(0);
  R product = x;
  const R stirling = StirlingOf(Select(below, R(1) - x, x), product);
  R result = x;
  if (Any(below)) {  // gamma(x) gamma(1 - x) = pi / sin(pi x)
    const R ratio = product / Abs(SineOfHalfTurn(x - Round(x)));
    const R log = Log(Select(below, ratio, product));
    result = Select(below, R(1.14472988584940017414) - stirling + log, stirling - log);
    if (Any(Abs(x) < R(1e-200))) {  // whose product with pi has few digits
      result = Select(below, Select(x > R(-1e-200), -Log(Abs(x)), result), result);
    }
  } else {
    result = stirling - Log(product);
  }
  const auto is_near = Abs(x - R(1.5)) <= R(1);
  if (Any(is_near)) result = Select(is_near, LogGammaNearZeros(Select(is_near, x, R(1))), result);
  result = Select(x <= R(0), Select(x == Floor(x), R(kInfinity), result), result);
  return Select(Abs(x) == R(kInfinity), R(kInfinity), result);
}

template <FullArithmetic R>
POLYOP_HD R Digamma(R x) {
  constexpr double kFactors[] = {1.0 / 12,  -1.0 / 120,       1.0 / 252, -1.0 / 240,
                                 1.0 / 132, -691.0 / 32760.0, 1.0 / 12,  -3617.0 / 8160.0};
  constexpr int kShift = 10;
  const auto below = x < R(0);
  const R y = Select(below, R(1) - x, x);
  R steps = R(0);
  for (int k = 0; k < kShift; ++k) steps = steps + R(1) / (y + R(static_cast<double>(k)));
  const R z = y + R(kShift), inverse = R(1) / (z * z);
  R sum = R(kFactors[7]);
  for (int k = 6; k >= 0; --k) sum = sum * inverse + R(kFactors[k]);
  const R above = Log(z) - R(0.5) / z - inverse * sum - steps;
  // Near the positive zero, which is the sum of two numbers, without cancellation.
  const R t = x - R(1.4616321449683622) - R(9.549995429965697e-17);
  const auto is_near = Abs(t) < R(0.25);
  R result = above;
  if (Any(is_near)) result = Select(is_near, t * DigammaNearZeroSeries(InRange(t, -0.25, 0.25)), above);
  if (Any(below)) {
    R sine = R(0), cosine = R(0);
    SinCos(R(kPi) * (x - Round(x)), sine, cosine);
    result = Select(below, above - R(kPi) * cosine / sine, result);
    result = Select(below, Select(x == Floor(x), NotANumber<R>(), result), result);
  }
  return Select(x == R(0), -CopySign(R(kInfinity), x), Select(x == R(kInfinity), x, result));
}

template <FullArithmetic R>
POLYOP_HD R Trigamma(R x) {
  constexpr double kBernoulli[] = {1.0 / 6,  -1.0 / 30,       1.0 / 42, -1.0 / 30,
                                   5.0 / 66, -691.0 / 2730.0, 7.0 / 6,  -3617.0 / 510.0};
  constexpr int kShift = 10;
  const auto below = x < R(0);
  const R y = Select(below, R(1) - x, x);
  R steps = R(0);
  for (int k = 0; k < kShift; ++k) {
    const R step = y + R(static_cast<double>(k));
    steps = steps + R(1) / (step * step);
  }
  const R inverse = R(1) / (y + R(kShift)), square = inverse * inverse;
  R sum = R(kBernoulli[7]);
  for (int k = 6; k >= 0; --k) sum = sum * square + R(kBernoulli[k]);
  const R above = inverse + square * R(0.5) + inverse * square * sum + steps;
  R result = above;
  if (Any(below)) {
    R sine = R(0), cosine = R(0);
    SinCos(R(kPi) * (x - Round(x)), sine, cosine);
    const R ratio = R(kPi) / sine;
    result = Select(below, Select(x == Floor(x), R(kInfinity), ratio * ratio - above), above);
    result = Select(x == R(-kInfinity), NotANumber<R>(), result);
  }
  return Select(x == R(kInfinity), R(0), result);
}

// ---- Bessel functions ----

/// Returns exp(-|x|) I(|x|).
template <int kKind, Arithmetic R>
POLYOP_HD R ScaledI(R x) {
  const R size = Abs(x);
  const auto is_near = size <= R(8);
  R near = R(0), far = R(0);
  if (Any(is_near)) {
    const R t = InRange(size, 0, 8);
    near = kKind == 0 ? I0eNearSeries(t) : size * I1eNearSeries(t);
  }
  if (Any(size > R(8))) {
    const R t = InRange(R(8) / size, 0, 1);
    far = (kKind == 0 ? I0eFarSeries(t) : I1eFarSeries(t)) / SquareRoot(size);
  }
  return Select(is_near, near, Select(size > R(8), far, x));
}

template <Arithmetic R>
POLYOP_HD R I0e(R x) {
  return ScaledI<0>(x);
}
template <Arithmetic R>
POLYOP_HD R I1e(R x) {
  return Select(x == R(0), x, CopySign(ScaledI<1>(x), x));
}
/// Returns scaled * exp(size), without an overflow of the second factor alone.
template <Arithmetic R>
POLYOP_HD R Grown(R scaled, R size) {
  const R half = Exp(size * R(0.5));
  return Select(size == R(kInfinity), R(kInfinity), scaled * half * half);
}
template <Arithmetic R>
POLYOP_HD R I0(R x) {
  return Grown(ScaledI<0>(x), Abs(x));
}
template <Arithmetic R>
POLYOP_HD R I1(R x) {
  return Select(x == R(0), x, CopySign(Grown(ScaledI<1>(x), Abs(x)), x));
}

/// Returns exp(x) K(x).
template <int kKind, Arithmetic R>
POLYOP_HD R ScaledK(R x) {
  R near = R(0), far = R(0);
  if (Any(x <= R(2))) {
    const R small = Select(x > R(0), Select(x < R(2), x, R(2)), R(2)), growth = Exp(small);
    const R log = Log(small) - R(0.69314718055994530942);  // of small / 2, which may be 0
    const R log_i = log * ScaledI<kKind>(small) * growth, t = InRange(small * small, 0, 4);
    near = growth * (kKind == 0 ? K0NearSeries(t) - log_i : K1NearSeries(t) / small + log_i);
  }
  if (Any(x > R(2))) {
    const R t = InRange(R(2) / x, 0, 1);
    far = (kKind == 0 ? K0eFarSeries(t) : K1eFarSeries(t)) / SquareRoot(x);
  }
  const R result = Select(x == R(0), R(kInfinity), Select(x <= R(2), near, far));
  return Select(x >= R(0), result, NotANumber<R>());
}

template <Arithmetic R>
POLYOP_HD R K0e(R x) {
  return ScaledK<0>(x);
}
template <Arithmetic R>
POLYOP_HD R K1e(R x) {
  return ScaledK<1>(x);
}
template <Arithmetic R>
POLYOP_HD R K0(R x) {
  return ScaledK<0>(x) * Exp(-x);
}
template <Arithmetic R>
POLYOP_HD R K1(R x) {
  return ScaledK<1>(x) * Exp(-x);
}

/// Returns sqrt(2 / (pi x)) times P cos(c) - Q sin(c), or P sin(c) + Q cos(c), c = x - (2 kind + 1) pi / 4, of x > 8.
template <int kKind, bool kSecond, FullArithmetic R>
POLYOP_HD R BesselFar(R x) {
  const R u = R(8) / x, t = InRange(u * u, 0, 1);
  const R p = kKind == 0 ? P0Series(t) : P1Series(t), q = u * (kKind == 0 ? Q0Series(t) : Q1Series(t));
  R sine = R(0), cosine = R(0);
  SinCos(x, sine, cosine);  // not of c, whose difference is rounded
  const R less = sine - cosine, more = sine + cosine;
  const R cosine_of_c = kKind == 0 ? more : less, sine_of_c = kKind == 0 ? less : -more;  // times sqrt(2)
  const R sum = kSecond ? p * sine_of_c + q * cosine_of_c : p * cosine_of_c - q * sine_of_c;
  return Select(x == R(kInfinity), R(0), SquareRoot(R(1 / kPi) / x) * sum);
}

template <int kKind, Arithmetic R>
POLYOP_HD R BesselJNear(R size) {
  const R t = InRange(size * size, 0, 64);
  return kKind == 0 ? J0NearSeries(t) : size * J1NearSeries(t);
}

template <FullArithmetic R>
POLYOP_HD R SphericalJ0(R x) {
  const R size = Abs(x), sine = Sin(size);
  const R near = R(1) - size * size * R(1.0 / 6);  // below 1e-4 the next term does not count
  return Select(size < R(1e-4), near, Select(size == R(kInfinity), R(0), sine / size));
}

template <int kKind, FullArithmetic R>
POLYOP_HD R BesselJ(R x) {
  const R size = Abs(x);
  R near = R(0), far = R(0);
  if (Any(size <= R(8))) near = BesselJNear<kKind>(size);
  if (Any(size > R(8))) far = BesselFar<kKind, false>(size);
  const R result = Select(size <= R(8), near, Select(size > R(8), far, x));
  return kKind == 1 ? Select(x < R(0), -result, result) : result;
}

template <int kKind, FullArithmetic R>
POLYOP_HD R BesselY(R x) {
  R near = R(0), far = R(0);
  if (Any(x <= R(8))) {
    const R small = Select(x > R(0), Select(x < R(8), x, R(8)), R(8)), t = InRange(small * small, 0, 64);
    const R log = Log(small) * BesselJNear<kKind>(small);
    near = kKind == 0 ? Y0NearSeries(t) + R(2 / kPi) * log
                      : Y1NearSeries(t) * small + (R(2 / kPi) * log - R(2 / kPi) / small);
  }
  if (Any(x > R(8))) far = BesselFar<kKind, true>(x);
  const R result = Select(x == R(0), R(-kInfinity), Select(x <= R(8), near, far));
  return Select(x >= R(0), result, NotANumber<R>());
}

/// Returns Airy's function by its power series.
template <Arithmetic R>
POLYOP_HD R AiryNear(R x) {
  constexpr int kTerms = 24;
  const R cube = x * x * x;
  R f = R(1), g = x, f_term = R(1), g_term = x;
  for (int k = 1; k < kTerms; ++k) {
    f_term = f_term * cube * R(1.0 / ((3 * k - 1) * (3 * k)));
    g_term = g_term * cube * R(1.0 / ((3 * k) * (3 * k + 1)));
    f = f + f_term;
    g = g + g_term;
  }
  return R(0.35502805388781723926) * f - R(0.25881940379280679841) * g;
}

template <FullArithmetic R>
POLYOP_HD R AiryAi(R x) {
  const R size = Abs(x);
  const auto above = x >= R(2), below = x <= R(-4);
  R result = x;
  if (Any(size < R(4))) {
    result = AiryNear(Select(x < R(2), Select(x > R(-4), x, R(-4)), R(2)));
    result = Select(size < R(4), result, x);
  }
  if (Any(above)) {
    const R power = size * SquareRoot(size), t = InRange(R(2.82842712474619009760) / power, 0, 1);
    const R far = AiryAboveSeries(t) * Exp(R(-2.0 / 3) * power) / SquareRoot(SquareRoot(size));
    result = Select(above, Select(x == R(kInfinity), R(0), far), result);
  }
  if (Any(below)) {
    const R root = SquareRoot(size), power = size * root, u = R(8) / power, t = InRange(u * u, 0, 1);
    // The phase, 2/3 of the exact power, is high + low: far below 0 the digits of `low` are not negligible.
    const R of_root = FusedMultiplyAdd(-root, root, size) / (root + root);
    const R of_power = FusedMultiplyAdd(size, root, -power) + size * of_root;
    const R high = R(2.0 / 3) * power;
    const R low = FusedMultiplyAdd(R(2.0 / 3), power, -high) + R(2.0 / 3) * of_power + R(0x1p-54 * 2 / 3) * power;
    R sine_high = R(0), cosine_high = R(0), sine_low = R(0), cosine_low = R(0);
    SinCos(high, sine_high, cosine_high);
    SinCos(low, sine_low, cosine_low);
    const R sine_of_phase = sine_high * cosine_low + cosine_high * sine_low;
    const R cosine_of_phase = cosine_high * cosine_low - sine_high * sine_low;
    // The sine and cosine of the phase + pi / 4.
    const R sine = R(0.70710678118654752440) * (sine_of_phase + cosine_of_phase);
    const R cosine = R(0.70710678118654752440) * (cosine_of_phase - sine_of_phase);
    const R sum = AiryPSeries(t) * sine - u * AiryQSeries(t) * cosine;
    const R far = sum * R(0.56418958354775628695) / SquareRoot(SquareRoot(size));
    result = Select(below, Select(x == R(-kInfinity), R(0), far), result);
  }
  return result;
}

// ---- elementary functions ----

template <FullArithmetic R>
POLYOP_HD R Tan(R x) {
  R sine = R(0), cosine = R(0);
  SinCos(x, sine, cosine);
  return sine / cosine;
}

/// Returns (exp(|x|) + sign exp(-|x|)) / 2.
template <Arithmetic R>
POLYOP_HD R HalfOfExponentials(R x, double sign) {
  const R half = Exp(Abs(x) * R(0.5)), square = half * half;  // exp(|x|) may overflow although the result does not
  const R result = R(0.5) * half * half + R(0.5 * sign) / square;
  return Select(x == x, result, x);
}

template <Arithmetic R>
POLYOP_HD R Cosh(R x) {
  return HalfOfExponentials(x, 1);
}

template <Arithmetic R>
POLYOP_HD R Sinh(R x) {
  constexpr int kTerms = 9;
  const R square = x * x;
  R sum = R(1);
  for (int k = kTerms; k > 0; --k) sum = sum * square * R(1.0 / (2 * k * (2 * k + 1))) + R(1);
  return Select(Abs(x) < R(1), x * sum, CopySign(HalfOfExponentials(x, -1), x));
}

template <Arithmetic R>
POLYOP_HD R Atanh(R x) {
  const R size = Abs(x), inside = Select(size < R(1), size, R(0));
  const R result = R(0.5) * LogOnePlus((inside + inside) / (R(1) - inside));
  return Select(size < R(1), CopySign(result, x), Select(size == R(1), x * R(kInfinity), NotANumber<R>()));
}

template <Arithmetic R>
POLYOP_HD R Softplus(R x) {
  return Select(x == x, Select(x > R(0), x, R(0)) + LogOnePlus(Exp(-Abs(x))), x);
}

/// Returns x tanh(softplus(x)).
template <Arithmetic R>
POLYOP_HD R Mish(R x) {
  const R power = Exp(Select(x < R(40), x, R(40))), n = power * (power + R(2));
  return x * (n / (n + R(2)));
}

/// Returns -x log(x), and 0 for 0.
template <Arithmetic R>
POLYOP_HD R Entropy(R x) {
  const auto positive = x > R(0), infinite = x == R(kInfinity);
  const R product = -x * Log(Select(infinite, R(2), Select(positive, x, R(1))));
  return Select(positive, product, Select(x == R(0), R(0), Select(x < R(0), R(-kInfinity), x)));
}

/// Returns log(x / (1 - x)); near 1/2 by the series of 2 atanh(t), t = 2 x - 1, because the quotient is rounded.
template <Arithmetic R>
POLYOP_HD R Logit(R x) {
  constexpr double kFactors[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27};
  constexpr int kTerms = kNegligible<R> > 0 ? 6 : 14;
  const R inside = Select(x > R(0), Select(x < R(1), x, R(0.5)), R(0.5)), t = inside + inside - R(1), square = t * t;
  R sum = R(kFactors[kTerms - 1]);
  for (int k = kTerms - 2; k >= 0; --k) sum = MultiplyAdd(sum, square, R(kFactors[k]));
  const R result = Select(square < R(0.0625), (t + t) * sum, Log(inside / (R(1) - inside)));
  const R limit = Select(x == R(1), R(kInfinity), Select(x == R(0), R(-kInfinity), NotANumber<R>()));
  return Select(x > R(0), Select(x < R(1), result, limit), limit);
}
