# SPDX-License-Identifier: Apache-2.0
"""Gradients as training programs compute them: transforms, compiled steps, checkpoints and tensors of any strides."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import polyop.functional  # noqa: F401 - registers the operators
from polyop._torch.gradients import RULES, GradientKernel, without_gradient_kernels
from polyop._torch.operators import OPERATORS
from tests.support.gradient_cases import CASES, SIZED_BY_VALUES, call, differentiable, operator_of

KERNELS = [name for name in CASES if OPERATORS[operator_of(name)].gradient is not None]
FORMULAS = ["active_rotated_filter", "assign_score_withk", "qkv_attention", "rotate"]
# An operator of each kind: regions, convolution, attention, sampling, maxima with indices, gathers; and formulas.
SOME = [
    "roi_align", "roi_pool", "prroi_pool", "modulated_deform_conv2d", "ms_deform_attn", "grid_sampler", "carafe",
    "corner_pool", "cummax", "three_interpolate", "bicubic_interpolate", "instance_norm", "multi_level_roi_align",
    *FORMULAS,
]  # fmt: skip
# PyTorch has no vmap over operators with lists of tensors.
NOT_MAPPED = {"active_rotated_filter", "assign_score_withk", "cummax", "multi_level_roi_align"}
BATCHES = [name for name in SOME if name not in NOT_MAPPED]

# PyTorch has no forward derivatives of its grid_sampler, which these formulas call.
NO_FORWARD_DERIVATIVES = {"grid_sampler", "rotate"}
# These formulas read sizes from tensors, which a compiler cannot trace.
UNTRACEABLE = {"bev_pool", "bev_pool_volume", "quick_cumsum", "tensorrt_roi_align-max"}


class Function:
    """The first output of a case as a function of its differentiable inputs."""

    def __init__(self, name: str) -> None:
        self.name, self.operator = name, OPERATORS[operator_of(name)]
        self.tensors = CASES[name][1]
        self.indices = differentiable(name)
        self.inputs = tuple(self.tensors[i].detach().clone() for i in self.indices)

    def __call__(self, *given: torch.Tensor) -> torch.Tensor:
        tensors = list(self.tensors)
        for i, tensor in zip(self.indices, given, strict=True):
            tensors[i] = tensor
        result = call(self.name, tensors)
        return result if isinstance(result, torch.Tensor) else result[0]

    def loss(self, *given: torch.Tensor) -> torch.Tensor:
        return self(*given).square().sum()

    def gradients(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = [t.detach().requires_grad_() for t in given or self.inputs]
        return torch.autograd.grad(self.loss(*leaves), leaves)


def all_arguments(function: Function) -> tuple[int, ...]:
    return tuple(range(len(function.inputs)))


# ---- torch.func --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CASES if name not in SIZED_BY_VALUES])
def test_grad_equals_backward(name: str) -> None:
    function = Function(name)
    got = torch.func.grad(function.loss, all_arguments(function))(*function.inputs)
    tolerance = 1e-6 if name == "cumulative-products" else 0  # torch.cumprod has two, and one cannot be differentiated
    torch.testing.assert_close(got, function.gradients(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [name for name in SOME if name not in NO_FORWARD_DERIVATIVES])
def test_vjp_and_jvp_agree(name: str) -> None:
    """<u, J v> is the same by forward and by reverse derivatives, in double precision."""
    function = Function(name)
    function.tensors = [t.double() if t.is_floating_point() else t for t in function.tensors]
    inputs = tuple(t.double() for t in function.inputs)
    tangents = tuple(torch.rand_like(t) for t in inputs)
    output, along = torch.func.jvp(function, inputs, tangents)
    expected, pullback = torch.func.vjp(function, *inputs)
    torch.testing.assert_close(output, expected)
    cotangent = torch.rand_like(output)
    backward = sum((g * t).sum() for g, t in zip(pullback(cotangent), tangents, strict=True))
    torch.testing.assert_close((along * cotangent).sum(), backward)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", ["roi_align", "grid_sampler", "carafe", "cummax", "qkv_attention"])
def test_jacobians_and_hessians(name: str) -> None:
    function = Function(name)
    first, rest = function.inputs[0], function.inputs[1:]

    def output(tensor: torch.Tensor) -> torch.Tensor:
        return function(tensor, *rest)[..., :1]

    def loss(tensor: torch.Tensor) -> torch.Tensor:
        return output(tensor).pow(3).sum()

    expected = torch.autograd.functional.jacobian(output, first)
    torch.testing.assert_close(torch.func.jacrev(output)(first), expected)
    if name not in NO_FORWARD_DERIVATIVES:
        torch.testing.assert_close(torch.func.jacfwd(output)(first), expected)
    expected = torch.autograd.functional.hessian(loss, first)
    torch.testing.assert_close(torch.func.jacrev(torch.func.jacrev(loss))(first), expected)
    if name not in NO_FORWARD_DERIVATIVES:
        torch.testing.assert_close(torch.func.hessian(loss)(first), expected)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", BATCHES)
def test_gradients_of_each_sample(name: str) -> None:
    """vmap over gradients gives those of each element of the batch."""
    function = Function(name)
    first, rest = function.inputs[0], function.inputs[1:]
    batch = torch.stack([first, first.flip(0) * 0.5, first + 0.25])
    arguments = all_arguments(function)
    got = torch.func.vmap(torch.func.grad(function.loss, arguments), (0, *[None] * len(rest)))(batch, *rest)
    for n, element in enumerate(batch):
        torch.testing.assert_close([g[n] for g in got], list(function.gradients(element, *rest)))


def test_gradients_through_vmap() -> None:
    """A sum over a mapped call: shared inputs have one gradient."""
    function = Function("carafe")
    features, masks = function.inputs
    batch = torch.stack([features, features * 0.5])

    def loss(batch: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
        return torch.func.vmap(function, (0, None))(batch, masks).square().sum()

    got = torch.func.grad(loss, (0, 1))(batch, masks)
    each = [function.gradients(element, masks) for element in batch]
    torch.testing.assert_close(got[0], torch.stack([g[0] for g in each]))
    torch.testing.assert_close(got[1], each[0][1] + each[1][1])


# ---- compiled steps and checkpoints ----------------------------------------------------------------------


@pytest.mark.parametrize("name", SOME)
def test_checkpoint(name: str) -> None:
    function = Function(name)
    for reentrant in (False, True):
        leaves = [t.detach().requires_grad_() for t in function.inputs]
        checkpoint(function, *leaves, use_reentrant=reentrant).square().sum().backward()
        torch.testing.assert_close([leaf.grad for leaf in leaves], list(function.gradients()), rtol=0, atol=0)


# Sizes that are equal in the first call would be equal in its graph.
STEPS: dict[str, tuple[Callable[..., torch.Tensor], Callable[[int], list[torch.Tensor]]]] = {
    "roi_align": (
        lambda x, rois: torch.ops.polyop.roi_align(x, rois, output_height=3, output_width=3, sampling_ratio=2),
        lambda n: [torch.rand(2, 3, 7 + n, 9 + n), torch.tensor([[0, 1.0, 1, 4, 5], [1, 0, 0, 6, 6]]).repeat(2 + n, 1)],
    ),
    "modulated_deform_conv2d": (
        lambda x, offset, mask, weight: torch.ops.polyop.modulated_deform_conv2d(x, offset, mask, weight, None),
        lambda n: [
            torch.rand(1, 4, 7 + n, 12 + n),
            torch.rand(1, 18, 5 + n, 10 + n),
            torch.rand(1, 9, 5 + n, 10 + n),
            torch.rand(2, 4, 3, 3),
        ],
    ),
    "grid_sampler": (
        lambda x, grid: torch.ops.polyop.grid_sampler(x, grid),
        lambda n: [torch.rand(2, 3, 7 + n, 9 + n), torch.rand(2, 4 + n, 5 + n, 2)],
    ),
    "cummax": (lambda x: torch.ops.polyop.cummax(x, dim=1)[0], lambda n: [torch.rand(3 + n, 4 + n)]),
    "qkv_attention": (  # by the formula
        lambda q, k, v: torch.ops.polyop.qkv_attention(q, k, v),
        lambda n: [torch.rand(2, 3 + n, 8), torch.rand(2, 4 + n, 8), torch.rand(2, 4 + n, 6)],
    ),
}


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("name", STEPS)
def test_a_compiled_step_with_dynamic_shapes(name: str) -> None:
    """One graph without breaks serves all sizes, forward and backward."""
    operation, inputs_of = STEPS[name]
    graphs: list[Any] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        graphs.append(graph)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    def loss(*given: torch.Tensor) -> torch.Tensor:
        return (operation(*given) * 2).square().mean()

    step = torch.compile(loss, backend=backend, fullgraph=True, dynamic=True)
    for n in (1, 2, 5):
        inputs = inputs_of(n)
        results = []
        for function in (step, loss):
            leaves = [t.detach().requires_grad_() for t in inputs]
            function(*leaves).backward()
            results.append([leaf.grad for leaf in leaves])
        torch.testing.assert_close(*results)
    assert len(graphs) == 1


@pytest.mark.usefixtures("fresh_compiler")
def test_a_compiled_gradient_of_torch_func() -> None:
    function = Function("carafe")
    step = torch.compile(torch.func.grad(function.loss, (0, 1)), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(step(*function.inputs), function.gradients())


@pytest.mark.parametrize("name", [name for name in CASES if name not in SIZED_BY_VALUES])
def test_opcheck_with_gradients(name: str) -> None:
    attributes, tensors = CASES[name]
    operator = OPERATORS[operator_of(name)]
    leaves = [t.detach().clone().requires_grad_(t.is_floating_point()) for t in tensors]
    checks = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    if name in UNTRACEABLE and name not in KERNELS:
        checks.pop()
    torch.library.opcheck(operator.overload, tuple(operator.nest(leaves)), attributes, test_utils=checks)


# ---- tensors of any strides ------------------------------------------------------------------------------


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the values in memory with gaps and the axes reversed."""
    wide = torch.zeros(*reversed(tensor.shape), 2, dtype=tensor.dtype)[..., 0]
    return wide.permute(tuple(reversed(range(tensor.dim())))).copy_(tensor)


@pytest.mark.parametrize("name", SOME)
def test_strided_inputs_and_gradients(name: str) -> None:
    function = Function(name)
    output = function(*function.inputs)
    grad = torch.rand_like(output)
    results = []
    for change in (torch.clone, strided):
        leaves = [change(t).requires_grad_() for t in function.inputs]
        results.append(torch.autograd.grad(function(*leaves), leaves, change(grad)))
    torch.testing.assert_close(*results, rtol=0, atol=0)


@pytest.mark.parametrize("name", [name for name in SOME if name != "prroi_pool"])  # its boxes differ
def test_expanded_inputs_and_gradients(name: str) -> None:
    """`sum()` has an expanded gradient; an input that is expanded from one value has the sum of its gradients."""
    function = Function(name)
    inputs = [torch.full([1] * t.dim(), 0.5) for t in function.inputs]
    shapes = [t.shape for t in function.inputs]
    expanded = [t.requires_grad_() for t in inputs]
    got = torch.autograd.grad(function(*[t.expand(s) for t, s in zip(expanded, shapes, strict=True)]).sum(), expanded)
    dense = [torch.full(shape, 0.5).requires_grad_() for shape in shapes]
    output = function(*dense)
    expected = torch.autograd.grad(output, dense, torch.ones_like(output))
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g.flatten(), e.sum()[None], rtol=1e-4, atol=1e-4)


# ---- kernels and formulas --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["roi_align", "ms_deform_attn", "cummax"])
def test_formulas_replace_the_kernels(name: str) -> None:
    """`without_gradient_kernels` selects the formula, which the profiler shows."""
    function = Function(name)
    kernel = f"polyop::{operator_of(name)}_backward"
    assert kernel in RULES
    for enabled in (True, False):
        with torch.profiler.profile() as profile:
            if enabled:
                expected = function.gradients()
            else:
                with without_gradient_kernels():
                    got = function.gradients()
        assert (kernel in {event.key for event in profile.key_averages()}) == enabled
    torch.testing.assert_close(got, expected)


@pytest.fixture
def deterministic_algorithms(request: pytest.FixtureRequest) -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=request.param)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("deterministic_algorithms", [False, True], ids=["error", "warn_only"], indirect=True)
@pytest.mark.parametrize(("devices", "calls_kernel"), [(["cpu"], False), (["cuda"], True)])
@pytest.mark.usefixtures("deterministic_algorithms")
def test_deterministic_algorithms_exclude_unordered_sums(
    monkeypatch: pytest.MonkeyPatch, devices: list[str], calls_kernel: bool
) -> None:
    """Only CUDA kernels add in any order, so the test marks the CPU's."""
    function = Function("roi_align")
    assert function.operator.gradient is not None
    monkeypatch.setattr(function.operator.gradient, "nondeterministic_devices", devices)
    called = []
    own = GradientKernel.call

    def record(self: GradientKernel, *args: Any) -> Any:
        called.append(self.gradient.name)
        return own(self, *args)

    monkeypatch.setattr(GradientKernel, "call", record)
    (got,) = function.gradients()
    assert called == (["roi_align_backward"] if calls_kernel else [])
    with without_gradient_kernels():
        (want,) = function.gradients()
    torch.testing.assert_close(got, want)


def test_the_first_backward_pass_imports_nothing() -> None:
    """torch.autograd.grad would import sympy, which takes a second."""
    script = """
import sys, torch, polyop.functional
x = torch.rand(2, 5, 8, requires_grad=True)
torch.ops.polyop.qkv_attention(x, x, x).sum().backward()
assert x.grad.any()
print("sympy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
