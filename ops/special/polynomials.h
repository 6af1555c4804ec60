// SPDX-License-Identifier: Apache-2.0
// Orthogonal polynomials of an argument x and a degree, an integer, in double precision. Included like unary.h, and
// after it.

/// Returns the polynomial of a degree by its recurrence, and 0 for a negative degree. Its time is that of the degree.
template <class Terms, Arithmetic R>
POLYOP_HD R ByRecurrence(R x, R degree) {
  R before = R(1), here = Terms::First(x), result = Select(degree < R(1), before, here);
  for (int k = 1; Any(degree > R(k)); ++k) {
    const R next = Terms::Next(x, here, before, k);
    before = here;
    here = next;
    result = Select(degree == R(k + 1), next, result);
  }
  return Select(degree < R(0), R(0), result);
}

struct HermiteHTerms {
  template <Arithmetic R>
  static POLYOP_HD R First(R x) {
    return x + x;
  }
  template <Arithmetic R>
  static POLYOP_HD R Next(R x, R here, R before, int k) {
    return R(2) * (x * here - R(k) * before);
  }
};

struct HermiteHeTerms {
  template <Arithmetic R>
  static POLYOP_HD R First(R x) {
    return x;
  }
  template <Arithmetic R>
  static POLYOP_HD R Next(R x, R here, R before, int k) {
    return x * here - R(k) * before;
  }
};

struct LaguerreTerms {
  template <Arithmetic R>
  static POLYOP_HD R First(R x) {
    return R(1) - x;
  }
  template <Arithmetic R>
  static POLYOP_HD R Next(R x, R here, R before, int k) {
    return ((R(2 * k + 1) - x) * here - R(k) * before) / R(k + 1);
  }
};

struct LegendreTerms {
  template <Arithmetic R>
  static POLYOP_HD R First(R x) {
    return x;
  }
  template <Arithmetic R>
  static POLYOP_HD R Next(R x, R here, R before, int k) {
    return (R(2 * k + 1) * x * here - R(k) * before) / R(k + 1);
  }
};

/// The kinds of Chebyshev's polynomials.
enum class Chebyshev { kT, kU, kV, kW };

/// Returns Chebyshev's polynomial, by powers of x + sqrt(x^2 - 1): (T_n, U_(n-1)) is the pair of the parts of its n-th
/// power, which is squared for each bit of the degree. Requires: degree <= 2^53, or NaN.
template <Chebyshev kKind, FullArithmetic R>
POLYOP_HD R ChebyshevPolynomial(R x, R degree) {
  const auto infinite = Abs(x) == R(kInfinity);
  const R inside = Select(infinite, CopySign(R(1e308), x), x), below = inside - R(1), above = inside + R(1);
  R t = R(1), u = R(0);
  double bit = 1;
  while (Any(degree >= R(bit))) bit *= 2;
  while (bit > 1) {
    bit /= 2;
    const R prefix = Floor(degree * R(1 / bit)), half = R(0.5) * prefix;
    const R square = MultiplyAdd(t, t, (below * u) * (above * u)), twice = R(2) * t * u;
    const auto even = half == Floor(half);
    t = Select(even, square, MultiplyAdd(inside, square, below * (above * twice)));
    u = Select(even, twice, MultiplyAdd(inside, twice, square));
  }
  R result = t;
  if (kKind == Chebyshev::kU) result = MultiplyAdd(inside, u, t);
  if (kKind == Chebyshev::kV) result = MultiplyAdd(below, u, t);
  if (kKind == Chebyshev::kW) result = MultiplyAdd(above, u, t);
  result = Select(infinite, Select(degree > R(0), CopySign(R(kInfinity), result), R(1)), result);
  return Select(degree < R(0), R(0), result);
}
