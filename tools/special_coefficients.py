#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes python/polyop/_aten/special_coefficients.py: Chebyshev series of special functions.

    python tools/special_coefficients.py > python/polyop/_aten/special_coefficients.py
    python tools/special_coefficients.py --header > ops/special/coefficients.h     the same numbers for C++

Needs mpmath. A series approximates a smooth function on an interval that is mapped to [-1, 1].
"""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp

mp.mp.dps = 40
TOLERANCE = mp.mpf(10) ** -16
TABLES = Path(__file__).parents[1] / "python" / "polyop" / "_aten" / "special_coefficients.py"


def series(function: Callable[[Any], Any], low: float, high: float, terms: int = 96) -> list[float]:
    """Returns the coefficients of a function on [low, high], up to the last one that matters in double precision."""
    nodes = [mp.cos(mp.pi * (2 * k + 1) / (2 * terms)) for k in range(terms)]
    low, high = mp.mpf(low), mp.mpf(high)
    values = [function((t * (high - low) + high + low) / 2) for t in nodes]
    found = []
    for j in range(terms):
        total = mp.fsum(v * mp.cos(mp.pi * j * (2 * k + 1) / (2 * terms)) for k, v in enumerate(values))
        found.append(total * (1 if j == 0 else 2) / terms)
    largest = max(map(abs, found))
    while abs(found[-1]) < largest * TOLERANCE:
        found.pop()
    assert len(found) < terms, "the function is not smooth enough"
    return [float(c) for c in found]


def erfcx(t: Any) -> Any:
    """Returns exp(x^2) erfc(x) (1 + 2 x) for x >= 0 as a function of t = (x - 4) / (x + 4)."""
    if t >= 1:
        return 2 / mp.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    if x > 25:  # the asymptotic series
        total = term = mp.mpf(1)
        for k in range(1, 30):
            term *= -(2 * k - 1) / (2 * x * x)
            total += term
        return total * (1 + 2 * x) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x) * (1 + 2 * x)


def erf_inverse(w: Any) -> Any:
    """Returns erfinv(y) / y as a function of w = -log(1 - y^2)."""
    if w == 0:
        return mp.sqrt(mp.pi) / 2
    y = mp.sqrt(-mp.expm1(-w))
    # 1 - y, without cancellation
    complement = mp.exp(-w) / (1 + y)
    x = mp.sqrt(max(w, mp.mpf("1e-30"))) if w > 3 else y * mp.sqrt(mp.pi) / 2
    if w > 3:
        x = mp.sqrt(w - mp.log(mp.pi * w) / 2 * mp.mpf("0.9"))
    for _ in range(60):
        step = (mp.erfc(x) - complement) * mp.sqrt(mp.pi) / 2 * mp.exp(x * x)
        x += step
        if abs(step) < mp.mpf(10) ** -36:
            break
    return x / y


def bessel_phase(kind: int) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Returns the functions P and Q of u = (8 / x)^2 with J = sqrt(2 / (pi x)) (P cos(c) - Q sin(c)),
    Y = sqrt(2 / (pi x)) (P sin(c) + Q cos(c)), c = x - (2 kind + 1) pi / 4; Q is divided by 8 / x."""

    def parts(u: Any) -> tuple[Any, Any]:
        x = 8 / mp.sqrt(u)
        c = x - (2 * kind + 1) * mp.pi / 4
        scale = mp.sqrt(mp.pi * x / 2)
        j, y = mp.besselj(kind, x) * scale, mp.bessely(kind, x) * scale
        return j * mp.cos(c) + y * mp.sin(c), (y * mp.cos(c) - j * mp.sin(c)) * x / 8

    limits = (mp.mpf(1), mp.mpf(4 * kind * kind - 1) / 64)
    return (
        lambda u: parts(u)[0] if u > mp.mpf(10) ** -12 else limits[0],
        lambda u: parts(u)[1] if u > mp.mpf(10) ** -12 else limits[1],
    )


def airy_above(u: Any) -> Any:
    """Returns Ai(x) x^(1/4) exp(2/3 x^(3/2)) as a function of u = (2 / x)^(3/2)."""
    if u < mp.mpf(10) ** -5:
        zeta = mp.mpf(2) ** 2.5 / 3 / u if u > 0 else mp.inf
        total = term = mp.mpf(1)
        for k in range(1, 8):
            term *= -mp.mpf((6 * k - 5) * (6 * k - 3) * (6 * k - 1)) / (216 * k * (2 * k - 1) * zeta) if u > 0 else 0
            total += term
        return total / (2 * mp.sqrt(mp.pi))
    x = 2 / u ** (mp.mpf(2) / 3)
    return mp.airyai(x) * mp.root(x, 4) * mp.exp(mp.mpf(2) / 3 * x ** mp.mpf("1.5"))


def airy_phase(v: Any) -> tuple[Any, Any]:
    """Returns P and Q / u as functions of v = u^2 = (4 / x)^3, with
    Ai(-x) = (P sin(c) - Q cos(c)) / (sqrt(pi) x^(1/4)), c = 2/3 x^(3/2) + pi/4."""
    if v < mp.mpf(10) ** -12:
        return mp.mpf(1), mp.mpf(5) / 72 * mp.mpf(3) / 16
    x = 4 / mp.cbrt(v)
    c = mp.mpf(2) / 3 * x ** mp.mpf("1.5") + mp.pi / 4
    scale = mp.sqrt(mp.pi) * mp.root(x, 4)
    a, b = mp.airyai(-x) * scale, mp.airybi(-x) * scale
    return a * mp.sin(c) + b * mp.cos(c), (b * mp.sin(c) - a * mp.cos(c)) / mp.sqrt(v)


def even(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda u: function(mp.sqrt(u)) if u > mp.mpf(10) ** -30 else function(mp.mpf(10) ** -15)


def write_header() -> None:
    print(
        "// Chebyshev series of special functions, of an argument in [-1, 1]. Written by tools/special_coefficients.py."
    )
    print("// Included once for each instruction set, in a namespace, after the functions Clenshaw and CountTerms.\n")
    for name, values in runpy.run_path(str(TABLES)).items():
        if not name.isupper():
            continue
        camel = "".join(part.capitalize() for part in name.split("_"))
        print(f"template <class R>\nPOLYOP_HD R {camel}Series(R t) {{\n  static constexpr double c[] = {{")
        print(",\n".join(f"      {value!r}" for value in values) + "};")
        print("  return Clenshaw<CountTerms<R>(c)>(c, t);\n}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--header", action="store_true", help="write the header of the tables that exist")
    if parser.parse_args().header:
        write_header()
        return
    p0, q0 = bessel_phase(0)
    p1, q1 = bessel_phase(1)
    tables = {
        "ERFCX": series(erfcx, -1, 1),
        "ERF": series(even(lambda x: mp.erf(x) / x), 0, 1),
        "ERFINV_CENTRE": series(erf_inverse, 0, 6),
        "ERFINV_TAIL": series(lambda s: erf_inverse(s * s), 2.4, 6.2),
        "ERFINV_FAR": series(lambda s: erf_inverse(s * s), 6.2, 27.5),
        "LOG_GAMMA_NEAR_TWO": series(lambda t: mp.loggamma(2 + t) / t, -0.5, 0.5),
        "DIGAMMA_NEAR_ZERO": series(lambda t: mp.digamma(mp.findroot(mp.digamma, 1.46) + t) / t, -0.25, 0.25),
        "I0E_NEAR": series(lambda x: mp.besseli(0, x) * mp.exp(-x), 0, 8),
        "I0E_FAR": series(
            lambda t: mp.besseli(0, 8 / t) * mp.exp(-8 / t) * mp.sqrt(8 / t) if t > 0.002 else hankel_i(0, 8 / t), 0, 1
        ),
        "I1E_NEAR": series(lambda x: mp.besseli(1, x) * mp.exp(-x) / x, 0, 8),
        "I1E_FAR": series(
            lambda t: mp.besseli(1, 8 / t) * mp.exp(-8 / t) * mp.sqrt(8 / t) if t > 0.002 else hankel_i(1, 8 / t), 0, 1
        ),
        "K0_NEAR": series(even(lambda x: mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)), 0, 4),
        "K1_NEAR": series(even(lambda x: (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x)) * x), 0, 4),
        "K0E_FAR": series(
            lambda t: mp.besselk(0, 2 / t) * mp.exp(2 / t) * mp.sqrt(2 / t) if t > 0.001 else hankel_k(0, 2 / t), 0, 1
        ),
        "K1E_FAR": series(
            lambda t: mp.besselk(1, 2 / t) * mp.exp(2 / t) * mp.sqrt(2 / t) if t > 0.001 else hankel_k(1, 2 / t), 0, 1
        ),
        "J0_NEAR": series(even(lambda x: mp.besselj(0, x)), 0, 64),
        "J1_NEAR": series(even(lambda x: mp.besselj(1, x) / x), 0, 64),
        "Y0_NEAR": series(even(lambda x: mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)), 0, 64),
        "Y1_NEAR": series(
            even(lambda x: (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x), 0, 64
        ),
        "P0": series(p0, 0, 1),
        "Q0": series(q0, 0, 1),
        "P1": series(p1, 0, 1),
        "Q1": series(q1, 0, 1),
        "AIRY_ABOVE": series(airy_above, 0, 1),
        "AIRY_P": series(lambda v: airy_phase(v)[0], 0, 1),
        "AIRY_Q": series(lambda v: airy_phase(v)[1], 0, 1),
    }
    print('"""Chebyshev coefficients. Written by tools/special_coefficients.py."""\n')
    for name, values in tables.items():
        print(f"{name} = (")
        for value in values:
            print(f"    {value!r},")
        print(")")


def hankel_k(kind: int, x: Any) -> Any:
    """Returns K(x) exp(x) sqrt(x) for large x."""
    total = term = mp.mpf(1)
    for k in range(1, 12):
        term *= mp.mpf(4 * kind * kind - (2 * k - 1) ** 2) / (8 * k * x) if x < mp.inf else 0
        total += term
    return total * mp.sqrt(mp.pi / 2)


def hankel_i(kind: int, x: Any) -> Any:
    """Returns I(x) exp(-x) sqrt(x) for large x."""
    total = term = mp.mpf(1)
    for k in range(1, 12):
        term *= -mp.mpf(4 * kind * kind - (2 * k - 1) ** 2) / (8 * k * x) if x < mp.inf else 0
        total += term
    return total / mp.sqrt(2 * mp.pi)


if __name__ == "__main__":
    main()
