# SPDX-License-Identifier: Apache-2.0
"""Gradients on the GPU: kernels and formulas, compared with the CPU's.

Many kernels add with atomic operations, so the last bits of such sums differ from run to run (docs/training.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

import polyop.functional
from polyop import formulas
from polyop._torch.gradients import without_gradient_kernels
from polyop._torch.operators import OPERATORS
from tests.support.gradient_cases import CASES, call, differentiable, operator_of
from tests.support.on_gpu import DTYPE_NAMES, expect_equal, in_type
from tests.support.torch_calls import as_tuple

TOLERANCES = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}
KERNELS = [name for name in CASES if OPERATORS[operator_of(name)].gradient is not None]
Tensors = Sequence[torch.Tensor]


def types_of(name: str) -> list[torch.dtype]:
    return [dtype for dtype in TOLERANCES if in_type(OPERATORS[operator_of(name)], CASES[name][1], dtype)]


IN_TYPES = [pytest.param(name, dtype, id=f"{name}-{DTYPE_NAMES[dtype]}") for name in CASES for dtype in types_of(name)]


def gradients(
    function: Callable[..., Any], tensors: Tensors, indices: Sequence[int], grads: Tensors, on_gpu: bool
) -> list[torch.Tensor]:
    """Returns the gradients of some tensors for the gradients of the outputs of function(*tensors)."""
    leaves = [(t.cuda() if on_gpu else t).detach() for t in tensors]
    for i in indices:
        leaves[i] = leaves[i].clone().requires_grad_()
    pairs = [
        (o, g.cuda() if on_gpu else g)
        for o, g in zip(as_tuple(function(*leaves)), grads, strict=True)
        if o.requires_grad
    ]
    outputs, given = zip(*pairs, strict=True)
    return list(torch.autograd.grad(outputs, [leaves[i] for i in indices], given))


def random_like(outputs: Any) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [
        torch.rand(o.shape, generator=generator).to(o.dtype) if o.is_floating_point() else torch.zeros_like(o)
        for o in as_tuple(outputs)
    ]


def of_case(name: str) -> Callable[..., Any]:
    return lambda *tensors: call(name, tensors)


@pytest.mark.parametrize(("name", "dtype"), IN_TYPES)
def test_equals_the_cpu(name: str, dtype: torch.dtype) -> None:
    tensors = in_type(OPERATORS[operator_of(name)], CASES[name][1], dtype)
    grads = random_like(call(name, tensors))
    expected, got = (gradients(of_case(name), tensors, differentiable(name), grads, on_gpu) for on_gpu in (False, True))
    assert expected
    expect_equal(got, expected, TOLERANCES[dtype])


@pytest.mark.parametrize("name", CASES)
def test_some_of_the_gradients(name: str) -> None:
    """Any selection of gradients, which is the mask of the kernel's outputs, gives the gradients of all together."""
    tensors = CASES[name][1]
    grads = random_like(call(name, tensors))
    indices = differentiable(name)
    everything = dict(zip(indices, gradients(of_case(name), tensors, indices, grads, False), strict=True))
    for i in indices:
        for chosen in ([i], [j for j in indices if j != i]):
            if chosen:
                got = gradients(of_case(name), tensors, chosen, grads, True)
                expect_equal(got, [everything[j] for j in chosen], TOLERANCES[torch.float32])


@pytest.mark.parametrize("name", KERNELS)
def test_formulas_equal_the_kernels(name: str) -> None:
    """On the GPU, both compute the same gradients."""
    tensors, indices = CASES[name][1], differentiable(name)
    grads = random_like(call(name, tensors))
    kernel = gradients(of_case(name), tensors, indices, grads, True)
    with without_gradient_kernels():
        formula = gradients(of_case(name), tensors, indices, grads, True)
    expect_equal(kernel, [g.cpu() for g in formula], TOLERANCES[torch.float32])


@pytest.mark.parametrize("name", CASES)
def test_formulas_in_double_precision(name: str) -> None:
    """The kernels do not take float64 tensors on the GPU, but the formulas do, and create all tensors there."""
    operator = OPERATORS[operator_of(name)]
    specs = [operator.inputs[operator.input_of(i)] for i in range(len(CASES[name][1]))]
    tensors = [
        t.double() if t.is_floating_point() and not s.value else t for t, s in zip(CASES[name][1], specs, strict=True)
    ]

    def function(*given: torch.Tensor) -> Any:
        return operator.through(formulas.find(operator.name).formula)(*operator.nest(given), **CASES[name][0])

    grads = random_like(function(*tensors))
    expected, got = (gradients(function, tensors, differentiable(name), grads, on_gpu) for on_gpu in (False, True))
    expect_equal(got, expected, 1e-9)


# PyTorch's own operator, which their formulas use, has no second derivative.
WITHOUT_SECOND_DERIVATIVES = {"grid_sampler", "planar_grid_sampler", "rotate"}


@pytest.mark.parametrize("name", [name for name in CASES if operator_of(name) not in WITHOUT_SECOND_DERIVATIVES])
def test_second_derivatives(name: str) -> None:
    """The gradient of a gradient penalty."""

    def penalty(*given: torch.Tensor) -> torch.Tensor:
        output = as_tuple(call(name, given))[0]
        inputs = [given[i] for i in differentiable(name)]
        first = torch.autograd.grad(output.square().sum(), inputs, create_graph=True)
        return sum(g.square().sum() for g in first)

    tensors = CASES[name][1]
    if as_tuple(call(name, tensors))[0].numel() == 0:
        return
    grads = [torch.ones(())]
    expected, got = (gradients(penalty, tensors, differentiable(name), grads, on_gpu) for on_gpu in (False, True))
    expect_equal(got, expected, 1e-3)


# ---- odd sizes, more than one block of threads -----------------------------------------------------------


def boxes(columns: int, extent: float, count: int = 67) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    rows = torch.rand(count, columns, generator=generator) * extent
    rows[:, 0] = torch.arange(count) % 2
    if columns == 5:
        rows[:, 3:] += rows[:, 1:3]
    return rows


def odd(*shape: int, low: float = 0, high: float = 1) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(sum(shape))) * (high - low) + low


LEVELS = torch.tensor([[31, 43], [15, 21], [7, 11]])
STARTS = torch.tensor([0, 31 * 43, 31 * 43 + 15 * 21])
PIXELS = 31 * 43 + 15 * 21 + 7 * 11
# A call of each kind of gradient kernel: the function, its tensors, and which of these have gradients.
ODD: dict[str, tuple[Callable[..., Any], list[torch.Tensor], list[int]]] = {
    "roi_align": (lambda x, r: polyop.roi_align(x, r, (7, 5), 0.7, 2), [odd(2, 37, 61, 83), boxes(5, 70)], [0]),
    "roi_align_rotated": (
        lambda x, r: polyop.roi_align_rotated(x, r, (7, 5), 0.7, 2), [odd(2, 37, 61, 83), boxes(6, 50)], [0],
    ),
    "roi_pool": (lambda x, r: polyop.roi_pool(x, r, (7, 5), 0.7), [odd(2, 37, 61, 83), boxes(5, 70)], [0]),
    "grid_sample": (
        lambda x, g: polyop.grid_sample(x, g), [odd(2, 37, 61, 83), odd(2, 41, 53, 2, low=-1.1, high=1.1)], [0, 1],
    ),
    "modulated_deform_conv2d": (
        lambda x, o, m, w, b: polyop.modulated_deform_conv2d(x, o, m, w, b, padding=(1, 1), groups=3, deform_groups=3),
        [odd(2, 33, 29, 31), odd(2, 54, 29, 31, low=-3, high=3), odd(2, 27, 29, 31), odd(39, 11, 3, 3), odd(39)],
        [0, 1, 2, 3, 4],
    ),
    "ms_deform_attn": (
        lambda v, a, w: polyop.ms_deform_attn(v, LEVELS.to(v.device), STARTS.to(v.device), a, w),
        [odd(2, PIXELS, 7, 33), odd(2, 301, 7, 3, 5, 2, low=-0.1, high=1.1), odd(2, 301, 7, 3, 5)], [0, 1, 2],
    ),
    "carafe": (lambda x, m: polyop.carafe(x, m, 5, 1, 2), [odd(2, 37, 19, 23), odd(2, 25, 38, 46)], [0, 1]),
    "correlation": (
        lambda a, b: polyop.correlation(a, b, 1, 5, 1, 0, 1), [odd(2, 37, 29, 31), odd(2, 37, 29, 31)], [0, 1],
    ),
    "corner_pool": (lambda x: polyop.corner_pool(x, "left"), [odd(2, 37, 61, 83)], [0]),
    "cummax": (lambda x: polyop.cummax(x, 1)[0], [odd(7, 1031, 13)], [0]),
    "three_interpolate": (
        lambda f, w: polyop.three_interpolate(f, torch.arange(2 * 1031 * 3, device=f.device).view(2, 1031, 3) % 257, w),
        [odd(2, 37, 257), odd(2, 1031, 3)], [0],
    ),
    "chamfer_distance": (lambda a, b: polyop.chamfer_distance(a, b)[:2], [odd(2, 1031, 3), odd(2, 517, 3)], [0, 1]),
    "segment_csr": (
        lambda x: polyop.segment_csr(x, torch.tensor([0, 3, 3, 500, 1031], device=x.device), "mean"),
        [odd(1031, 37)], [0],
    ),
    "masked_conv2d": (
        lambda x, p, w, b: polyop.masked_conv2d(x, p, w, b, padding=1),
        [odd(1, 13, 61, 83), odd(1, 61, 83) - 0.5, odd(19, 13, 3, 3), odd(19)], [0, 2, 3],
    ),
}  # fmt: skip


def deterministic(name: str) -> bool:
    operator = {"grid_sample": "grid_sampler"}.get(name, operator_of(name))
    gradient = OPERATORS[operator].gradient
    return gradient is not None and "cuda" not in gradient.nondeterministic_devices


@pytest.mark.parametrize("name", ODD)
def test_odd_sizes_equal_the_cpu(name: str) -> None:
    function, tensors, indices = ODD[name]
    grads = random_like(function(*tensors))
    expected, got = (gradients(function, tensors, indices, grads, on_gpu) for on_gpu in (False, True))
    expect_equal(got, expected, TOLERANCES[torch.float32])


@pytest.mark.parametrize("dtype", TOLERANCES, ids=DTYPE_NAMES.get)
@pytest.mark.parametrize("side", [20, 140], ids=["images_together", "image_in_parts"])
def test_deformable_convolution_by_cublas(side: int, dtype: torch.dtype) -> None:
    """PyTorch loads cuBLASLt, which multiplies groups of 16 filters and more: of some images, or of a part of one."""
    images, channels = (3, 32) if side == 20 else (1, 128)
    pixels = (side, side - 1)
    image = odd(images, channels, *pixels, low=-0.5, high=0.5)
    offset, mask = odd(images, 72, *pixels, low=-3, high=3), odd(images, 36, *pixels)
    weight, bias = odd(48, channels // 2, 3, 3, low=-0.5, high=0.5), odd(48)
    tensors = [t.to(dtype) for t in (image, offset, mask, weight, bias)]

    def convolve(x: torch.Tensor, o: torch.Tensor, m: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return polyop.modulated_deform_conv2d(x, o, m, w, b, padding=(1, 1), groups=2, deform_groups=4)

    grads = [g - 0.5 for g in random_like(convolve(*tensors))]
    indices = range(len(tensors))
    expected, got = (gradients(convolve, tensors, indices, grads, on_gpu) for on_gpu in (False, True))
    expect_equal(got, expected, TOLERANCES[dtype])


def test_which_kernels_are_deterministic() -> None:
    """The table of docs/training.md: these have no atomic additions."""
    assert {name for name in ODD if deterministic(name)} == {
        "carafe", "correlation", "corner_pool", "three_interpolate", "chamfer_distance", "segment_csr", "masked_conv2d",
    }  # fmt: skip


@pytest.mark.parametrize("name", [name for name in [*KERNELS, *ODD] if deterministic(name)])
def test_deterministic_kernels_repeat_their_results(name: str) -> None:
    function, tensors, indices = ODD[name] if name in ODD else (of_case(name), CASES[name][1], differentiable(name))
    grads = random_like(function(*tensors))
    first = gradients(function, tensors, indices, grads, True)
    for _ in range(3):
        again = gradients(function, tensors, indices, grads, True)
        torch.testing.assert_close(again, first, rtol=0, atol=0, equal_nan=True)


@pytest.fixture
def deterministic_algorithms() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("deterministic_algorithms")
@pytest.mark.parametrize("name", [name for name in ODD if not deterministic(name)])
def test_deterministic_algorithms_repeat_or_refuse(name: str) -> None:
    """PyTorch's operators in the formulas are then deterministic, or raise its error."""
    function, tensors, indices = ODD[name]
    grads = random_like(function(*tensors))
    try:
        results = [gradients(function, tensors, indices, grads, True) for _ in range(3)]
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        return
    for again in results[1:]:
        torch.testing.assert_close(again, results[0], rtol=0, atol=0)
