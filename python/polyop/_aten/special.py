"""Special functions, by standard operators. Most are computed in double precision and rounded to the type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from polyop._aten import special_coefficients as c
from polyop._aten.table import WRONG, decomposes

_LOG_PI = math.log(math.pi)
# B(2 k) of Bernoulli's numbers, for Stirling's and Euler's series.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_SHIFT = 10
"""Arguments of asymptotic series are moved up by this."""
_ZETA_TERMS = 32


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
    return _inverse(y, -torch.log(4 * p * (1 - p))) * math.sqrt(2)


@_in_double
def _log_ndtr(x: Tensor) -> Tensor:
    t = x * math.sqrt(0.5)
    above = _erfcx_above(t.abs()) / 2
    low = torch.log(above) - t * t
    high = torch.log1p(-above * torch.exp(-t * t))
    return torch.where(x < 0, low, torch.where(x >= 0, high, x))


decomposes("aten::special_erfcx", without=WRONG, when="arguments from 9 on")(_erfcx)
decomposes("aten::erfinv")(_erfinv)
decomposes("aten::special_ndtri")(_ndtri)
decomposes("aten::special_log_ndtr", without=WRONG, when="arguments from -5 down")(_log_ndtr)


def _where_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """Leaves calls of other types than float64 to ONNX Runtime, whose kernels lack that type."""

    def call(self: Tensor) -> Any:
        return function(self) if self.dtype == torch.float64 else NotImplemented

    return call


decomposes("aten::erf", "aten::special_erf", when="float64: ONNX Runtime lacks Erf")(_where_double(_erf))
decomposes("aten::erfc", "aten::special_erfc", when="float64: ONNX Runtime lacks Erf")(_where_double(erfc))


# ---- gamma and zeta --------------------------------------------------------------------------------


def _sine_of_turns(x: Tensor) -> Tensor:
    """Returns sin(pi x), exact for integers."""
    return torch.sin(math.pi * (x - 2 * torch.round(x / 2)))


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
    turns = x - torch.round(x)
    reflected = above - math.pi * torch.cos(math.pi * turns) / torch.sin(math.pi * turns)
    result = torch.where(below, reflected, above)
    result = torch.where(below & (x == torch.floor(x)), _filled(x, torch.nan), result)
    return torch.where(x == 0, -torch.inf * torch.sign(1 / x), result)


def _zeta_sum(s: Tensor, q: Tensor) -> Tensor:
    """Returns Hurwitz' zeta function, by Euler's and Maclaurin's formula after the first terms."""
    s, q = torch.broadcast_tensors(s, q)
    total = torch.zeros_like(q)
    for k in range(_ZETA_TERMS):
        total = total + (q + k) ** -s
    a = q + _ZETA_TERMS
    power = a**-s
    total = total + power * a / (s - 1) + power / 2
    factor, inverse = s * power / a, 1 / (a * a)
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + factor * (b / math.factorial(2 * k))
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) * inverse
    return total


@_in_double
def _zeta(s: Tensor, q: Tensor) -> Tensor:
    s, q = torch.broadcast_tensors(s, q)
    result = _zeta_sum(s, q)
    pole = torch.where(q == torch.floor(q), _filled(q, torch.inf), _filled(q, torch.nan))
    bad = (q <= 0) & ((q == torch.floor(q)) | (s != torch.floor(s)))
    result = torch.where(bad, pole, result)
    result = torch.where(s < 1, _filled(s, torch.nan), result)
    return torch.where(s == 1, _filled(s, torch.inf), result)


@decomposes("aten::polygamma")
def polygamma(n: int, self: Tensor) -> Any:
    if n == 0:
        return _digamma(self)

    def wide(x: Tensor) -> Tensor:
        sign = 1.0 if n % 2 else -1.0
        return _zeta(_filled(x, n + 1.0), x) * (sign * math.factorial(n))

    return _in_double(wide)(self)


decomposes("aten::lgamma")(_lgamma)
decomposes("aten::digamma", "aten::special_digamma")(_digamma)
decomposes("aten::special_zeta")(_zeta)


@decomposes("aten::mvlgamma")
def mvlgamma(self: Tensor, p: int) -> Any:
    result = _lgamma(self)
    for j in range(1, p):
        result = result + _lgamma(self - j / 2)
    return result + _LOG_PI * p * (p - 1) / 4


_FRACTION_TERMS = 80
_SERIES_TERMS = 100


def _gamma_parts(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the regularised lower and upper incomplete gamma functions."""
    a, x = torch.broadcast_tensors(a, x)
    positive = x.clamp(min=1e-300)
    front = torch.exp(a * torch.log(positive) - x - _log_gamma_above(a.clamp(min=1e-300)))
    term = total = 1 / a
    for k in range(1, _SERIES_TERMS):
        term = term * x / (a + k)
        total = total + term
    fraction = torch.zeros_like(x)
    for k in range(_FRACTION_TERMS, 0, -1):
        fraction = k * (a - k) / (x + 2 * k + 1 - a + fraction)
    upper = front / (x + 1 - a + fraction)
    by_series = (x <= 1) | (x < a + 1)
    lower = torch.where(by_series, front * total, 1 - upper)
    return lower, torch.where(by_series, 1 - front * total, upper)


def _incomplete(part: int) -> Callable[..., Any]:
    def wide(a: Tensor, x: Tensor) -> Tensor:
        a, x = torch.broadcast_tensors(a, x)
        result = _gamma_parts(a, x)[part]
        at_zero, at_infinity = (0.0, 1.0) if part == 0 else (1.0, 0.0)
        result = torch.where((x == 0) | a.isinf(), _filled(x, at_zero), result)
        result = torch.where((a == 0) | x.isinf(), _filled(x, at_infinity), result)
        none = (a < 0) | (x < 0) | ((a == 0) & (x == 0)) | (a.isinf() & x.isinf())
        return torch.where(none, _filled(x, torch.nan), result)

    return _in_double(wide)


decomposes("aten::igamma", "aten::special_gammainc")(_incomplete(0))
decomposes("aten::igammac", "aten::special_gammaincc")(_incomplete(1))


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
    small = x.clamp(min=1e-300, max=2)
    series = _series(c.K0_NEAR if kind == 0 else c.K1_NEAR, small * small, 0, 4)
    log_i = torch.log(small / 2) * _scaled_i(kind, small) * torch.exp(small)
    near = torch.exp(small) * (series - log_i if kind == 0 else series / small + log_i)
    large = x.clamp(min=2)
    far = _series(c.K0E_FAR if kind == 0 else c.K1E_FAR, 2 / large, 0, 1) / torch.sqrt(large)
    result = torch.where(x <= 2, near, far)
    result = torch.where(x == 0, _filled(x, torch.inf), result)
    return torch.where(x >= 0, result, _filled(x, torch.nan))


def _phase(kind: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns P, Q, and the angle of the asymptotic forms of J and Y, with x >= 8."""
    u = 8 / x
    p = _series(c.P0 if kind == 0 else c.P1, u * u, 0, 1)
    q = _series(c.Q0 if kind == 0 else c.Q1, u * u, 0, 1) * u
    return p, q, x - (2 * kind + 1) * math.pi / 4


def _bessel_j(kind: int, x: Tensor) -> Tensor:
    size = x.abs()
    near = _series(c.J0_NEAR if kind == 0 else c.J1_NEAR, size * size, 0, 64)
    large = size.clamp(min=8)
    p, q, angle = _phase(kind, large)
    far = torch.sqrt(2 / (math.pi * large)) * (p * torch.cos(angle) - q * torch.sin(angle))
    result = torch.where(size <= 8, near if kind == 0 else near * size, far)
    return result if kind == 0 else result * torch.sign(x)


def _bessel_y(kind: int, x: Tensor) -> Tensor:
    small = x.clamp(min=1e-300, max=8)
    near = _series(c.Y0_NEAR if kind == 0 else c.Y1_NEAR, small * small, 0, 64)
    log = torch.log(small) * _bessel_j(kind, small)
    near = near + 2 / math.pi * log if kind == 0 else near * small + 2 / math.pi * (log - 1 / small)
    large = x.clamp(min=8)
    p, q, angle = _phase(kind, large)
    far = torch.sqrt(2 / (math.pi * large)) * (p * torch.sin(angle) + q * torch.cos(angle))
    result = torch.where(x <= 8, near, far)
    result = torch.where(x == 0, _filled(x, -torch.inf), result)
    return torch.where(x >= 0, result, _filled(x, torch.nan))


def _bessel(function: Callable[[int, Tensor], Tensor], kind: int, *targets: str, grows: int = 0) -> None:
    """Adds a function, times exp(grows |x|)."""

    def wide(x: Tensor) -> Tensor:
        result = function(kind, x)
        if function is _scaled_i and kind == 1:
            result = result * torch.sign(x)
        return result * torch.exp(grows * x.abs()) if grows else result

    decomposes(*targets)(_in_double(wide))


_bessel(_scaled_i, 0, "aten::special_i0e")
_bessel(_scaled_i, 1, "aten::special_i1e")
_bessel(_scaled_i, 0, "aten::i0", "aten::special_i0", "aten::special_modified_bessel_i0", grows=1)
_bessel(_scaled_i, 1, "aten::special_i1", "aten::special_modified_bessel_i1", grows=1)
_bessel(_scaled_k, 0, "aten::special_scaled_modified_bessel_k0")
_bessel(_scaled_k, 1, "aten::special_scaled_modified_bessel_k1")
_bessel(_scaled_k, 0, "aten::special_modified_bessel_k0", grows=-1)
_bessel(_scaled_k, 1, "aten::special_modified_bessel_k1", grows=-1)
_bessel(_bessel_j, 0, "aten::special_bessel_j0")
_bessel(_bessel_j, 1, "aten::special_bessel_j1")
_bessel(_bessel_y, 0, "aten::special_bessel_y0")
_bessel(_bessel_y, 1, "aten::special_bessel_y1")


@decomposes("aten::special_spherical_bessel_j0")
@_in_double
def spherical_bessel_j0(x: Tensor) -> Tensor:
    ratio = torch.sin(x) / torch.where(x == 0, torch.ones_like(x), x)
    ratio = torch.where(x.isinf(), torch.zeros_like(x), ratio)
    return torch.where(x.abs() < 1e-4, 1 - x * x / 6, ratio)


# ---- Chebyshev polynomials -------------------------------------------------------------------------


def _chebyshev(kind: str, shifted: bool) -> Callable[..., Any]:
    """Returns the polynomial of degree n as a function of an angle: x is its cosine, or its hyperbolic cosine."""

    def call(x: Tensor, n: Tensor) -> Tensor:
        dtype = torch.result_type(x, n)
        dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
        x, n = x.to(dtype), n.to(dtype)
        x = 2 * x - 1 if shifted else x
        n = torch.trunc(n)
        x, n = torch.broadcast_tensors(x, n)
        even = n - 2 * torch.floor(n / 2) == 0
        sign = torch.where(even | (x >= 0), torch.ones_like(x), -torch.ones_like(x))
        # V and W are each other's mirror images.
        mirrored = {"v": "w", "w": "v"}.get(kind, kind)
        size = x.abs()
        angle, growth = torch.acos(size.clamp(max=1)), torch.acosh(size.clamp(min=1))
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
        return torch.cosh(n * t)
    if kind == "u":
        return _limit(torch.sinh((n + 1) * t) / torch.sinh(t), t, n + 1)
    if kind == "v":
        return torch.cosh((n + 0.5) * t) / torch.cosh(t / 2)
    return _limit(torch.sinh((n + 0.5) * t) / torch.sinh(t / 2), t, 2 * n + 1)


# ---- orthogonal polynomials by recurrence ----------------------------------------------------------

_MAX_DEGREE = 32


def _orthogonal(first: Callable[[Tensor], Tensor], step: Callable[..., Tensor]) -> Callable[..., Any]:
    """Returns the polynomial whose degree 0 is 1 and degree 1 is `first`. NaN for a degree above the greatest one."""

    def wide(x: Tensor, n: Tensor) -> Tensor:
        x, n = torch.broadcast_tensors(x, torch.trunc(n))
        before, here = torch.ones_like(x), first(x)
        result = torch.where(n == 0, before, torch.where(n < 0, torch.zeros_like(x), _filled(x, torch.nan)))
        for k in range(1, _MAX_DEGREE + 1):
            result = torch.where(n == k, here, result)
            before, here = here, step(k, x, here, before)
        return result

    return _in_double(wide)


_RECURRENCES = {
    "hermite_polynomial_h": (lambda x: 2 * x, lambda k, x, p, q: 2 * (x * p - k * q)),
    "hermite_polynomial_he": (lambda x: x, lambda k, x, p, q: x * p - k * q),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)),
    "legendre_polynomial_p": (lambda x: x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)),
}


def _numbers(function: Callable[..., Any], first: bool) -> Callable[..., Any]:
    """Returns the overload whose first or second argument is a number."""

    def call(x: Any, n: Any) -> Any:
        tensor = n if first else x
        number = torch.full([], x if first else n, dtype=tensor.dtype, device=tensor.device)
        return function(number, tensor) if first else function(tensor, number)

    return call


for _kind in "tuvw":
    for _prefix in ("", "shifted_"):
        _function = _chebyshev(_kind, bool(_prefix))
        _target = f"aten::special_{_prefix}chebyshev_polynomial_{_kind}"
        decomposes(_target)(_function)
        decomposes(f"{_target}.x_scalar")(_numbers(_function, True))
        decomposes(f"{_target}.n_scalar")(_numbers(_function, False))
for _name, _recurrence in _RECURRENCES.items():
    _function = _orthogonal(*_recurrence)
    decomposes(f"aten::special_{_name}", when=f"degrees up to {_MAX_DEGREE}")(_function)
    decomposes(f"aten::special_{_name}.x_scalar", when=f"degrees up to {_MAX_DEGREE}")(_numbers(_function, True))
    decomposes(f"aten::special_{_name}.n_scalar", when=f"degrees up to {_MAX_DEGREE}")(_numbers(_function, False))
decomposes("aten::special_zeta.self_scalar")(_numbers(_zeta, True))
decomposes("aten::special_zeta.other_scalar")(_numbers(_zeta, False))
