# SPDX-License-Identifier: Apache-2.0
"""Special functions, by polyop's node or by standard operators, which are also the functions of polyop's nodes.

Most are computed in double precision and rounded to the type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from polyop._aten import special_coefficients as c
from polyop._aten.elementary import pair_by_node
from polyop._aten.table import SLOW, WRONG, decomposes

_LOG_PI = math.log(math.pi)
# B(2 k) of Bernoulli's numbers, for Stirling's and Euler's series.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_SHIFT = 10
"""Arguments of asymptotic series are moved up by this."""


def _in_double(function: Callable[..., Tensor]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        dtype = tensors[0].dtype
        for tensor in tensors[1:]:
            dtype = torch.promote_types(dtype, tensor.dtype)
        if not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        wide = [arg.to(torch.float64) if isinstance(arg, Tensor) else arg for arg in args]
        return function(*wide, **given).to(dtype)

    return call


def _series(coefficients: Sequence[float], x: Tensor, low: float, high: float) -> Tensor:
    """Returns the Chebyshev series on [low, high], by Clenshaw's recurrence. Clamps x to the interval."""
    # Two clamps of one tensor give files that ONNX Runtime refuses.
    x = torch.where(x < low, _filled(x, low), torch.where(x > high, _filled(x, high), x))
    t = (x * 2 - (high + low)) / (high - low)
    after = last = torch.zeros_like(t)
    for coefficient in reversed(coefficients[1:]):
        after, last = 2 * t * after - last + coefficient, after
    return t * after - last + coefficients[0]


def _polynomial(coefficients: Sequence[float], x: Tensor) -> Tensor:
    result = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _filled(x: Tensor, value: float) -> Tensor:
    return torch.full_like(x, value)


STANDARD: dict[tuple[str, int], Callable[[Tensor], Tensor]] = {}
"""Functions by standard operators: by the function and variant of polyop's special_unary."""


def _by_unary(name: str, variant: int, x: Tensor) -> Any:
    dtype = x.dtype if x.dtype.is_floating_point else torch.get_default_dtype()
    x = x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)
    return torch.ops.polyop.special_unary.default(x, function=name, variant=variant).to(dtype)


def _by_node(
    name: str,
    variant: int,
    standard: Callable[[Tensor], Tensor],
    *targets: str,
    only: torch.dtype | None = None,
    **given: str,
) -> None:
    """Adds a function that polyop's special_unary computes, and its form in standard operators."""

    def call(self: Tensor) -> Any:
        if only is not None and self.dtype != only:
            return NotImplemented
        return _by_unary(name, variant, self)

    STANDARD[name, variant] = standard
    decomposes(*targets, nodes=("special_unary",), **given)(call)


# ---- the error function ----------------------------------------------------------------------------


def _erfcx_above(x: Tensor) -> Tensor:
    """Returns exp(x^2) erfc(x) of x >= 0."""
    large = x.clamp(max=1e30)
    return _series(c.ERFCX, (large - 4) / (large + 4), -1, 1) / (1 + 2 * x)


@_in_double
def _erfcx(x: Tensor) -> Tensor:
    above = _erfcx_above(x.abs())
    return torch.where(x >= 0, above, torch.where(x < 0, 2 * torch.exp(x * x) - above, x))


@_in_double
def erfc(x: Tensor) -> Tensor:
    above = torch.exp(-x * x) * _erfcx_above(x.abs())
    return torch.where(x >= 0, above, torch.where(x < 0, 2 - above, x))


@_in_double
def _erf(x: Tensor) -> Tensor:
    near = x * _series(c.ERF, x * x, 0, 1)
    far = torch.sign(x) * (1 - torch.exp(-x * x) * _erfcx_above(x.abs()))
    return torch.where(x.abs() <= 1, near, torch.where(x.isnan(), x, far))


def _inverse(y: Tensor, w: Tensor) -> Tensor:
    """Returns erfinv(y), with w = -log(1 - y^2)."""
    centre = _series(c.ERFINV_CENTRE, w, 0, 6)
    root = torch.sqrt(w.clamp(min=0))
    tail = torch.where(root <= 6.2, _series(c.ERFINV_TAIL, root, 2.4, 6.2), _series(c.ERFINV_FAR, root, 6.2, 27.5))
    inside = y * torch.where(w <= 6, centre, tail)
    outside = torch.where(y.abs() == 1, y * torch.inf, _filled(y, torch.nan))
    return torch.where(y.abs() < 1, inside, outside)


@_in_double
def _erfinv(y: Tensor) -> Tensor:
    return _inverse(y, -torch.log((1 - y) * (1 + y)))


@_in_double
def _ndtri(p: Tensor) -> Tensor:
    y = 2 * p - 1
    # For a tiny p this rounds to -1.
    y = torch.where((p > 0) & (y == -1), _filled(y, -1 + 2**-53), y)
    result = _inverse(y, -torch.log(4 * p * (1 - p))) * math.sqrt(2)
    return torch.where(p < 0, _filled(p, torch.nan), result)


@_in_double
def _log_ndtr(x: Tensor) -> Tensor:
    t = x * math.sqrt(0.5)
    above = _erfcx_above(t.abs()) / 2
    low = torch.log(above) - t * t
    high = torch.log1p(-above * torch.exp(-t * t))
    return torch.where(x < 0, low, torch.where(x >= 0, high, x))


_by_node("erf", 2, _erfcx, "aten::special_erfcx", without=WRONG, when="arguments from 9 on")
_by_node("erf", 3, _log_ndtr, "aten::special_log_ndtr", without=WRONG, when="arguments from -5 down")
_by_node("erf", 4, _erfinv, "aten::erfinv")
_by_node("erf", 5, _ndtri, "aten::special_ndtri")
for _variant, _name, _standard in ((0, "erf", _erf), (1, "erfc", erfc)):
    _when = "float64: ONNX Runtime lacks Erf"
    _by_node("erf", _variant, _standard, f"aten::{_name}", f"aten::special_{_name}", only=torch.float64, when=_when)


# ---- gamma and zeta --------------------------------------------------------------------------------


def _sine_of_turns(x: Tensor) -> Tensor:
    """Returns sin(pi x), exact for integers."""
    return torch.sin(math.pi * (x - 2 * torch.round(x / 2)))


def _log_one_plus(x: Tensor) -> Tensor:
    total = 1 + x
    return torch.where(total == 1, x, torch.log(total) * x / (total - 1))


def _log_gamma_near_zeros(x: Tensor) -> Tensor:
    """Returns log gamma of x in [0.5, 2.5], without cancellation near its zeros, 1 and 2."""
    first = x < 1.5
    t = x - torch.where(first, 1.0, 2.0)
    of_two = t * _series(c.LOG_GAMMA_NEAR_TWO, t, -0.5, 0.5)
    return torch.where(first, of_two - _log_one_plus(torch.where(first, t, torch.zeros_like(t))), of_two)


def _log_gamma_above(x: Tensor) -> Tensor:
    """Returns log gamma of x > 0."""
    product = x
    for k in range(1, _SHIFT):
        product = product * (x + k)
    # Beyond this the product overflows, and is not needed.
    far = x > 1e6
    z = torch.where(far, x, x + _SHIFT)
    inverse = 1 / z
    factors = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)]
    stirling = (z - 0.5) * torch.log(z) - z + math.log(2 * math.pi) / 2
    stirling = stirling + inverse * _polynomial(factors, inverse * inverse)
    return torch.where(far, stirling, stirling - torch.log(torch.where(far, torch.ones_like(x), product)))


@_in_double
def _lgamma(x: Tensor) -> Tensor:
    below = x < 0.5
    above = _log_gamma_above(torch.where(below, 1 - x, x))
    reflected = _LOG_PI - torch.log(_sine_of_turns(x).abs()) - above
    result = torch.where(below, reflected, above)
    result = torch.where((x - 1.5).abs() <= 1, _log_gamma_near_zeros(x.clamp(0.5, 2.5)), result)
    infinite = ((x <= 0) & (x == torch.floor(x))) | x.isinf()
    return torch.where(infinite, _filled(x, torch.inf), result)


@_in_double
def _digamma(x: Tensor) -> Tensor:
    below = x < 0
    y = torch.where(below, 1 - x, x)
    steps = torch.zeros_like(y)
    for k in range(_SHIFT):
        steps = steps + 1 / (y + k)
    z = y + _SHIFT
    inverse = 1 / (z * z)
    factors = [b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)]
    above = torch.log(z) - 0.5 / z - inverse * _polynomial(factors, inverse) - steps
    # Near the positive zero, which is the sum of two numbers, without cancellation.
    t = x - 1.4616321449683622 - 9.549995429965697e-17
    near = t.abs() < 0.25
    above = torch.where(near, t * _series(c.DIGAMMA_NEAR_ZERO, t.clamp(-0.25, 0.25), -0.25, 0.25), above)
    turns = x - torch.round(x)
    reflected = above - math.pi * torch.cos(math.pi * turns) / torch.sin(math.pi * turns)
    result = torch.where(below, reflected, above)
    result = torch.where(below & (x == torch.floor(x)), _filled(x, torch.nan), result)
    return torch.where(x == 0, -torch.inf * torch.sign(1 / x), result)


def _pair(name: str) -> Callable[..., Any]:
    """Returns the function of two tensors that polyop's special_binary computes."""

    def call(a: Tensor, b: Tensor) -> Any:
        dtype = torch.promote_types(a.dtype, b.dtype)
        dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
        wide = dtype if dtype in (torch.float32, torch.float64) else torch.float32
        a, b = torch.broadcast_tensors(a.to(wide), b.to(wide))
        return torch.ops.polyop.special_binary.default(a, b, function=name).to(dtype)

    return call


_zeta = _pair("zeta")
decomposes("aten::special_zeta", nodes=("special_binary",))(_zeta)


@decomposes("aten::polygamma", nodes=("special_unary", "special_binary"))
def polygamma(n: int, self: Tensor) -> Any:
    if n == 0:
        return torch.ops.aten.digamma(self)
    if n == 1:
        return _by_unary("gamma", 2, self)

    dtype = self.dtype if self.dtype.is_floating_point else torch.get_default_dtype()
    x = self.to(dtype)
    return _zeta(_filled(x, n + 1.0), x) * ((1.0 if n % 2 else -1.0) * math.factorial(n))


@_in_double
def _trigamma(x: Tensor) -> Tensor:
    below = x < 0
    y = torch.where(below, 1 - x, x)
    steps = torch.zeros_like(y)
    for k in range(_SHIFT):
        steps = steps + 1 / (y + k).square()
    inverse = 1 / (y + _SHIFT)
    square = inverse * inverse
    above = inverse + square / 2 + inverse * square * _polynomial(_BERNOULLI, square) + steps
    sine = torch.sin(math.pi * (x - torch.round(x)))
    reflected = torch.where(x == torch.floor(x), _filled(x, torch.inf), (math.pi / sine).square() - above)
    result = torch.where(below, reflected, above)
    result = torch.where(x == torch.inf, torch.zeros_like(x), result)
    return torch.where(x == -torch.inf, _filled(x, torch.nan), result)


STANDARD["gamma", 2] = _trigamma
_by_node("gamma", 0, _lgamma, "aten::lgamma")
_by_node("gamma", 1, _digamma, "aten::digamma", "aten::special_digamma")


@decomposes("aten::mvlgamma")
def mvlgamma(self: Tensor, p: int) -> Any:
    result = torch.ops.aten.lgamma(self)
    for j in range(1, p):
        result = result + torch.ops.aten.lgamma(self - j / 2)
    return result + _LOG_PI * p * (p - 1) / 4


decomposes("aten::igamma", "aten::special_gammainc", nodes=("special_binary",))(_pair("igamma"))
decomposes("aten::igammac", "aten::special_gammaincc", nodes=("special_binary",))(_pair("igammac"))


# ---- elementary functions, which ONNX Runtime computes slowly -----------------------------------------


def _half_of_exponentials(x: Tensor, sign: float) -> Tensor:
    half = torch.exp(x.abs() / 2)
    return 0.5 * half * half + sign * 0.5 / (half * half)


def _cosh(x: Tensor) -> Tensor:
    return _half_of_exponentials(x, 1)


def _sinh(x: Tensor) -> Tensor:
    near = x * _polynomial([1 / math.factorial(2 * k + 1) for k in range(10)], x * x)
    return torch.where(x.abs() < 1, near, torch.sign(x) * _half_of_exponentials(x, -1))


def _atanh(x: Tensor) -> Tensor:
    size = x.abs()
    inside = torch.where(size < 1, size, torch.zeros_like(x))
    result = torch.sign(x) * 0.5 * _log_one_plus(2 * inside / (1 - inside))
    outside = torch.where(size == 1, x * torch.inf, _filled(x, torch.nan))
    return torch.where(size < 1, result, outside)


def _softplus(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, torch.zeros_like(x)) + _log_one_plus(torch.exp(-x.abs()))


def _mish(x: Tensor) -> Tensor:
    power = torch.exp(torch.where(x < 40, x, _filled(x, 40)))
    n = power * (power + 2)
    return x * (n / (n + 2))


STANDARD["elementary", 0] = _in_double(lambda x: torch.sin(x) / torch.cos(x))
STANDARD["elementary", 1] = _in_double(_sinh)
STANDARD["elementary", 2] = _in_double(_cosh)
STANDARD["elementary", 3] = _in_double(_atanh)
STANDARD["elementary", 4] = _in_double(_softplus)
STANDARD["elementary", 5] = _in_double(_mish)
STANDARD["elementary", 7] = _in_double(lambda x: torch.log(x) - torch.log1p(-x))


@_in_double
def _entr(x: Tensor) -> Tensor:
    product = torch.where(x == 0, torch.zeros_like(x), -x * torch.log(x))
    return torch.where(x < 0, _filled(x, -torch.inf), product)


_by_node("elementary", 6, _entr, "aten::special_entr", without=SLOW)


# ---- Bessel functions ------------------------------------------------------------------------------


def _scaled_i(kind: int, x: Tensor) -> Tensor:
    """Returns exp(-|x|) I(|x|)."""
    size = x.abs()
    near = _series(c.I0E_NEAR if kind == 0 else c.I1E_NEAR, size, 0, 8)
    near = near if kind == 0 else near * size
    large = size.clamp(min=8)
    far = _series(c.I0E_FAR if kind == 0 else c.I1E_FAR, 8 / large, 0, 1) / torch.sqrt(large)
    return torch.where(size <= 8, near, far)


def _scaled_k(kind: int, x: Tensor) -> Tensor:
    """Returns exp(x) K(x) of x > 0."""
    small = torch.where(x > 0, x, torch.ones_like(x)).clamp(max=2)
    series = _series(c.K0_NEAR if kind == 0 else c.K1_NEAR, small * small, 0, 4)
    log_i = (torch.log(small) - math.log(2)) * _scaled_i(kind, small) * torch.exp(small)
    near = torch.exp(small) * (series - log_i if kind == 0 else series / small + log_i)
    large = x.clamp(min=2)
    far = _series(c.K0E_FAR if kind == 0 else c.K1E_FAR, 2 / large, 0, 1) / torch.sqrt(large)
    result = torch.where(x <= 2, near, far)
    result = torch.where(x == 0, _filled(x, torch.inf), result)
    return torch.where(x >= 0, result, _filled(x, torch.nan))


def _phase(kind: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns P, Q, and sqrt(2) times the cosine and sine of the asymptotic forms' angle, x - (2 kind + 1) pi / 4.

    Requires: x >= 8. The difference itself would be rounded.
    """
    u = 8 / x
    p = _series(c.P0 if kind == 0 else c.P1, u * u, 0, 1)
    q = _series(c.Q0 if kind == 0 else c.Q1, u * u, 0, 1) * u
    sine, cosine = torch.sin(x), torch.cos(x)
    less, more = sine - cosine, sine + cosine
    return p, q, more if kind == 0 else less, less if kind == 0 else -more


def _bessel_j(kind: int, x: Tensor) -> Tensor:
    size = x.abs()
    near = _series(c.J0_NEAR if kind == 0 else c.J1_NEAR, size * size, 0, 64)
    large = size.clamp(min=8)
    p, q, cosine, sine = _phase(kind, large)
    far = torch.sqrt(1 / (math.pi * large)) * (p * cosine - q * sine)
    result = torch.where(size <= 8, near if kind == 0 else near * size, far)
    return result if kind == 0 else result * torch.sign(x)


def _bessel_y(kind: int, x: Tensor) -> Tensor:
    small = torch.where(x > 0, x, torch.ones_like(x)).clamp(max=8)
    near = _series(c.Y0_NEAR if kind == 0 else c.Y1_NEAR, small * small, 0, 64)
    log = torch.log(small) * _bessel_j(kind, small)
    near = near + 2 / math.pi * log if kind == 0 else near * small + (2 / math.pi * log - 2 / math.pi / small)
    large = x.clamp(min=8)
    p, q, cosine, sine = _phase(kind, large)
    far = torch.sqrt(1 / (math.pi * large)) * (p * sine + q * cosine)
    result = torch.where(x <= 8, near, far)
    result = torch.where(x == 0, _filled(x, -torch.inf), result)
    return torch.where(x >= 0, result, _filled(x, torch.nan))


def _wide(function: Callable[[int, Tensor], Tensor], kind: int, grows: int = 0) -> Callable[[Tensor], Tensor]:
    """Returns a function, times exp(grows |x|), in double precision."""

    def wide(x: Tensor) -> Tensor:
        result = function(kind, x)
        if function is _scaled_i and kind == 1:
            result = result * torch.sign(x)
        return result * torch.exp(grows * x.abs()) if grows else result

    return _in_double(wide)


for _kind in (0, 1):
    _targets = (f"aten::special_i{_kind}", f"aten::special_modified_bessel_i{_kind}")
    _by_node("bessel_i", _kind, _wide(_scaled_i, _kind, 1), *_targets, *(("aten::i0",) if _kind == 0 else ()))
    _by_node("bessel_i", 2 + _kind, _wide(_scaled_i, _kind), f"aten::special_i{_kind}e")
    _by_node("bessel_k", _kind, _wide(_scaled_k, _kind, -1), f"aten::special_modified_bessel_k{_kind}")
    _by_node("bessel_k", 2 + _kind, _wide(_scaled_k, _kind), f"aten::special_scaled_modified_bessel_k{_kind}")
    _by_node("bessel_j", _kind, _wide(_bessel_j, _kind), f"aten::special_bessel_j{_kind}")
    _by_node("bessel_y", _kind, _wide(_bessel_y, _kind), f"aten::special_bessel_y{_kind}")


_AIRY_TERMS = 24


@_in_double
def _airy_ai(x: Tensor) -> Tensor:
    size = x.abs()
    # The power series.
    small = torch.where(x > 2, _filled(x, 2), torch.where(x < -4, _filled(x, -4), x))
    cube = small * small * small
    f, g = torch.ones_like(x), torch.ones_like(x)
    for k in range(_AIRY_TERMS, 0, -1):
        f = 1 + f * cube / ((3 * k - 1) * (3 * k))
        g = 1 + g * cube / ((3 * k) * (3 * k + 1))
    near = 0.35502805388781723926 * f - 0.25881940379280679841 * small * g
    # The asymptotic forms.
    large = torch.where(size < 2, _filled(x, 2), size)
    power, root = large * torch.sqrt(large), torch.sqrt(torch.sqrt(large))
    above = _series(c.AIRY_ABOVE, 2**1.5 / power, 0, 1) * torch.exp(-2 / 3 * power) / root
    u = 8 / power
    p, q = _series(c.AIRY_P, u * u, 0, 1), _series(c.AIRY_Q, u * u, 0, 1)
    angle = 2 / 3 * power + math.pi / 4
    below = (p * torch.sin(angle) - u * q * torch.cos(angle)) / (math.sqrt(math.pi) * root)
    result = torch.where(x >= 2, above, torch.where(x <= -4, below, near))
    return torch.where(x.isinf(), torch.zeros_like(x), result)


_by_node("airy", 0, _airy_ai, "aten::special_airy_ai")


@_in_double
def _spherical_j0(x: Tensor) -> Tensor:
    ratio = torch.sin(x) / torch.where(x == 0, torch.ones_like(x), x)
    ratio = torch.where(x.isinf(), torch.zeros_like(x), ratio)
    return torch.where(x.abs() < 1e-4, 1 - x * x / 6, ratio)


_by_node("bessel_j", 2, _spherical_j0, "aten::special_spherical_bessel_j0")


# ---- Chebyshev polynomials -------------------------------------------------------------------------


def _chebyshev(kind: str, shifted: bool) -> Callable[..., Any]:
    def call(x: Tensor, n: Tensor) -> Any:
        dtype = torch.result_type(x, n)
        dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
        x, n = x.to(dtype), n.to(dtype)
        return pair_by_node(f"chebyshev_{kind}", 2 * x - 1 if shifted else x, n, dtype)

    return call


def chebyshev_formula(kind: str) -> Callable[[Tensor, Tensor], Tensor]:
    """Returns the polynomial of degree n as a function of an angle: x is its cosine, or its hyperbolic cosine."""

    def call(x: Tensor, n: Tensor) -> Tensor:
        n = torch.where(n < 0, torch.ceil(n), torch.floor(n))
        even = n - 2 * torch.floor(n / 2) == 0
        sign = torch.where(even | (x >= 0), torch.ones_like(x), -torch.ones_like(x))
        # V and W are each other's mirror images.
        mirrored = {"v": "w", "w": "v"}.get(kind, kind)
        size = x.abs()
        above = size.clamp(min=1) - 1
        angle = torch.acos(size.clamp(max=1))
        growth = _log_one_plus(above + torch.sqrt(above) * torch.sqrt(above + 2))
        here = torch.where(size <= 1, _by_angle(kind, n, angle), _by_growth(kind, n, growth))
        if mirrored != kind:
            other = torch.where(size <= 1, _by_angle(mirrored, n, angle), _by_growth(mirrored, n, growth))
            here = torch.where(x >= 0, here, other)
        return torch.where(n < 0, torch.zeros_like(x), here * sign)

    return call


def _limit(ratio: Tensor, below: Tensor, limit: Tensor | float) -> Tensor:
    return torch.where(below == 0, limit + torch.zeros_like(ratio), ratio)


def _by_angle(kind: str, n: Tensor, t: Tensor) -> Tensor:
    if kind == "t":
        return torch.cos(n * t)
    if kind == "u":
        return _limit(torch.sin((n + 1) * t) / torch.sin(t), torch.sin(t), n + 1)
    if kind == "v":
        return torch.cos((n + 0.5) * t) / torch.cos(t / 2)
    return _limit(torch.sin((n + 0.5) * t) / torch.sin(t / 2), torch.sin(t / 2), 2 * n + 1)


def _by_growth(kind: str, n: Tensor, t: Tensor) -> Tensor:
    if kind == "t":
        return _cosh(n * t)
    if kind == "u":
        return _limit(_sinh((n + 1) * t) / _sinh(t), t, n + 1)
    if kind == "v":
        return _cosh((n + 0.5) * t) / _cosh(t / 2)
    return _limit(_sinh((n + 0.5) * t) / _sinh(t / 2), t, 2 * n + 1)


# ---- overloads with numbers, and the other polynomials ---------------------------------------------


def _numbers(function: Callable[..., Any], first: bool) -> Callable[..., Any]:
    """Returns the overload whose first or second argument is a number."""

    def call(x: Any, n: Any) -> Any:
        tensor = n if first else x
        number = torch.full([], x if first else n, dtype=tensor.dtype, device=tensor.device)
        return function(number, tensor) if first else function(tensor, number)

    return call


for _letter in "tuvw":
    for _prefix in ("", "shifted_"):
        _function = _chebyshev(_letter, bool(_prefix))
        _target = f"aten::special_{_prefix}chebyshev_polynomial_{_letter}"
        decomposes(_target, nodes=("special_binary",))(_function)
        decomposes(f"{_target}.x_scalar", nodes=("special_binary",))(_numbers(_function, True))
        decomposes(f"{_target}.n_scalar", nodes=("special_binary",))(_numbers(_function, False))
_BY_RECURRENCE = {
    "hermite_polynomial_h": "hermite_h",
    "hermite_polynomial_he": "hermite_he",
    "laguerre_polynomial_l": "laguerre",
    "legendre_polynomial_p": "legendre",
}
for _name, _node in _BY_RECURRENCE.items():
    _function = _pair(_node)
    decomposes(f"aten::special_{_name}", nodes=("special_binary",))(_function)
    decomposes(f"aten::special_{_name}.x_scalar", nodes=("special_binary",))(_numbers(_function, True))
    decomposes(f"aten::special_{_name}.n_scalar", nodes=("special_binary",))(_numbers(_function, False))
decomposes("aten::special_zeta.self_scalar", nodes=("special_binary",))(_numbers(_zeta, True))
decomposes("aten::special_zeta.other_scalar", nodes=("special_binary",))(_numbers(_zeta, False))
