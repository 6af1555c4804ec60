# SPDX-License-Identifier: Apache-2.0
"""polyop.accelerate(): PyTorch gives the same results with polyop's kernels as without them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db

import polyop
from polyop.accelerating import overrides
from tests.support.with_and_without import check, message, polyop_ran, same

pytestmark = pytest.mark.filterwarnings("error:.*autograd kernel was not registered")


@pytest.fixture(autouse=True)
def off_afterwards() -> Iterator[None]:
    yield
    polyop.accelerate(False)


@pytest.fixture
def small_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the minimum sizes of calls."""
    for table in (overrides.MIN_ELEMENTS, overrides.MIN_CHANNELS):
        for key in table:
            monkeypatch.setitem(table, key, 1)


# ---- PyTorch's own samples -------------------------------------------------------------------------

NAMES = {
    "cummax": "polyop_into::cummax",
    "cummin": "polyop_into::cummax",
    "nn.functional.instance_norm": "polyop::instance_norm",
    "nn.functional.interpolate bicubic": "polyop::bicubic_interpolate",
    "nn.functional.grid_sample": "polyop::grid_sampler",
    "grid_sampler_2d": "polyop::grid_sampler",
    "grid_sampler_3d": "polyop::grid_sampler",
}


def polyop_types(name: str) -> set[torch.dtype]:
    if "grid" in name:
        return {torch.float32}
    halves = {torch.float32, torch.float16, torch.bfloat16}
    return halves | {torch.int64} if name.startswith("cum") else halves


OPINFOS = {f"{o.name} {o.variant_test_name}".strip(): o for o in op_db}
PROFILED = 12  # number of samples for which the profiler checks which kernels ran
TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool]


def with_gradients(function: Callable[[], Any], sources: list[Tensor]) -> tuple[list[Tensor], list[Tensor | None]]:
    result = function()
    results = [result] if isinstance(result, Tensor) else list(result)
    ending = [r for r in results if r.requires_grad]
    if not ending:
        return results, []
    ones = [torch.full_like(r, 0.5) for r in ending]
    return results, list(torch.autograd.grad(ending, sources, ones, allow_unused=True))


# PyTorch takes minutes for its samples of grid_sampler_3d in half precision.
SAMPLES = [
    pytest.param(
        name,
        dtype,
        id=f"{name}-{str(dtype).removeprefix('torch.')}",
        marks=[pytest.mark.slow]
        if name == "grid_sampler_3d" and dtype.is_floating_point and dtype.itemsize != 4
        else [],
    )
    for name in NAMES
    for dtype in TYPES
]


@pytest.mark.parametrize(("name", "dtype"), SAMPLES)
def test_samples_of_pytorch(name: str, dtype: torch.dtype, small_too: None) -> None:
    info = OPINFOS[name]
    if dtype not in info.supported_dtypes("cpu"):
        sample = next(iter(info.sample_inputs("cpu", torch.float32)))
        want = message(lambda: info(sample.input.to(dtype), *sample.args, **sample.kwargs))
        with polyop.accelerate():
            assert message(lambda: info(sample.input.to(dtype), *sample.args, **sample.kwargs)) == want
        return
    ran: set[str] = set()
    profiled = 0
    for requires_grad in (False, True):
        if requires_grad and not (info.supports_autograd and dtype.is_floating_point):
            continue
        torch.manual_seed(1)
        for sample in info.sample_inputs("cpu", dtype, requires_grad=requires_grad):
            tensors = [sample.input, *sample.args, *sample.kwargs.values()]
            sources = [t for t in tensors if isinstance(t, Tensor) and t.requires_grad]

            def call(sample: Any = sample, sources: list[Tensor] = sources) -> Any:
                return with_gradients(lambda: info(sample.input, *sample.args, **sample.kwargs), sources)

            torch.manual_seed(2)
            want = call()
            with polyop.accelerate():
                torch.manual_seed(2)
                same(call(), want)
                if not requires_grad and profiled < PROFILED:
                    profiled += 1
                    ran |= polyop_ran(call)
    assert ran == ({NAMES[name]} if dtype in polyop_types(name) else set())


# ---- sizes at which polyop's kernels run -----------------------------------------------------------


def changed(x: Tensor, layout: str) -> Tensor:
    if layout == "channels last":
        return x.to(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
    if layout == "strided":
        return torch.stack([x, x], dim=-1)[..., 1]
    return x


@pytest.mark.parametrize("layout", ["contiguous", "channels last", "strided"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(mode: str, padding: str, align: bool, layout: str) -> None:
    torch.manual_seed(0)
    size = 260 if mode == "nearest" else 67
    x = changed(torch.randn(1, 32, 41, 53), layout)
    grid = torch.rand(1, size, size, 2) * 3 - 1.5
    check(lambda: F.grid_sample(x, grid, mode, padding, align), "polyop::grid_sampler")


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_volumes(mode: str, padding: str) -> None:
    torch.manual_seed(0)
    x, grid = torch.randn(2, 3, 9, 11, 13), torch.rand(2, 8, 17, 9, 3) * 3 - 1.5
    for layout in ("contiguous", "channels last", "strided"):
        check(
            lambda layout=layout: F.grid_sample(changed(x, layout), grid, mode, padding, False), "polyop::grid_sampler"
        )


@pytest.mark.parametrize("requested", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("mode", "axes"), [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)]
)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_of_grid_sample(padding: str, mode: str, axes: int, requested: tuple[bool, bool]) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 64, 7, 11) if axes == 2 else torch.randn(2, 64, 3, 5, 4)
    shape = (2, 60, 31, 2) if axes == 2 else (2, 9, 11, 13, 3)
    grid = torch.rand(shape) * 3 - 1.5
    weights = torch.randn(2, 64, *shape[1:-1])

    def gradients() -> tuple[Tensor, ...]:
        leaves = [t.detach().requires_grad_(r) for t, r in zip((x, grid), requested, strict=True)]
        output = F.grid_sample(*leaves, mode, padding, False)
        return torch.autograd.grad((output * weights).sum(), [leaf for leaf in leaves if leaf.requires_grad])

    want = gradients()
    with polyop.accelerate():
        got = gradients()
        assert "polyop::grid_sampler_backward" in polyop_ran(gradients)
    for g, w in zip(got, want, strict=True):
        assert g.stride() == w.stride()
        torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-5 * float(w.abs().max() + 1))


def test_gradients_of_distant_points_and_of_other_types_use_pytorch() -> None:
    grid = torch.rand(1, 67, 67, 2)
    distant = grid.clone()
    distant[0, 3, 5, 1] = float("nan")
    for points in (distant, grid.double()):
        x = torch.randn(1, 32, 41, 53, dtype=points.dtype, requires_grad=True)

        def call(x: Tensor = x, points: Tensor = points) -> tuple[Tensor, ...]:
            return torch.autograd.grad(F.grid_sample(x, points, align_corners=False).sum(), x)

        want = call()
        with polyop.accelerate():
            assert polyop_ran(call) == set()
            assert torch.equal(call()[0], want[0])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e10])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grids_with_infinite_or_distant_points_use_pytorch(padding: str, bad: float) -> None:
    x, grid = torch.randn(1, 32, 41, 53), torch.rand(1, 67, 67, 2)
    grid[0, 3, 5, 1] = bad
    want = F.grid_sample(x, grid, "bicubic", padding, False)
    with polyop.accelerate():
        got = F.grid_sample(x, grid, "bicubic", padding, False)
    assert torch.equal(got.view(torch.int32), want.view(torch.int32))


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [{"size": (61, 83)}, {"size": (7, 200)}, {"scale_factor": 0.7}, {"scale_factor": 1.3}])
def test_bicubic(size: dict[str, Any], dtype: torch.dtype, align: bool) -> None:
    torch.manual_seed(0)
    for channels in (1, 3):
        x = torch.randn(2, channels, 40, 50).to(dtype)
        for recompute in (False, True) if "scale_factor" in size else (None,):
            for layout, ran in (("contiguous", True), ("channels last", channels > 1), ("strided", False)):
                given = changed(x, layout)

                def call(given: Tensor = given, recompute: bool | None = recompute) -> Tensor:
                    return F.interpolate(
                        given, mode="bicubic", align_corners=align, recompute_scale_factor=recompute, **size
                    )

                check(call, *["polyop::bicubic_interpolate"] * ran)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [{"size": (61, 83)}, {"size": (7, 200)}, {"scale_factor": 0.7}, {"scale_factor": 1.3}])
def test_gradients_of_bicubic(size: dict[str, Any], align: bool) -> None:
    torch.manual_seed(0)
    for layout in ("contiguous", "channels last", "strided"):
        x = changed(torch.randn(2, 3, 40, 50), layout).requires_grad_()
        output = F.interpolate(x, mode="bicubic", align_corners=align, **size)
        for grad in (torch.randn_like(output), torch.ones(()).expand_as(output)):
            check(
                lambda x=x, output=output, grad=grad: torch.autograd.grad(output, x, grad, retain_graph=True),
                "polyop::bicubic_interpolate_backward",
            )


def test_bicubic_keeps_every_extent() -> None:
    """The float32 scale that polyop's kernel gets gives PyTorch's extents, or the call is left to PyTorch."""
    for inputs in (*range(1, 130), 1000, 1920, 4095):
        for scale in (None, 0.1, 0.3, 0.7, 1.1, 2.0, 2.3, 3.3, 10.0):
            extents = [*range(1, 130)] if scale is None else [max(1, int(inputs * scale))]
            for outputs in extents:
                chosen = overrides._scale_for(inputs, outputs, False, scale)
                if chosen is None:
                    assert scale is not None, (inputs, outputs)
                    continue
                x = torch.empty(1, 1, inputs, 1)
                got = torch.ops.polyop.bicubic_interpolate(x, scale_factor=[chosen, 1.0]) if inputs < 8 else None
                assert got is None or got.shape[2] == outputs
                assert chosen == pytest.approx(scale or outputs / inputs, rel=3e-7)


@pytest.mark.parametrize("function", [torch.cummax, torch.cummin], ids=["cummax", "cummin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64])
def test_cumulative(function: Callable, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (30, 37, 41)).to(dtype)  # many are equal
    if dtype.is_floating_point:
        x[torch.rand(x.shape) < 0.01] = -0.0
        x[torch.rand(x.shape) < 0.01] = float("nan")
    for dim in (0, 1, 2, -1, -3):
        check(lambda dim=dim: function(x, dim), "polyop_into::cummax")
        check(lambda dim=dim: function(x.transpose(0, 2), dim), "polyop_into::cummax")


def test_cumulative_into_given_outputs() -> None:
    x = torch.randn(30, 37, 41)
    want = torch.cummax(x, 1)
    with polyop.accelerate():
        values, indices = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64)
        torch.cummax(x, 1, out=(values, indices))
        same((values, indices), want)
        strided = torch.empty(41, 37, 30).transpose(0, 2)
        torch.cummax(x, 1, out=(strided, indices))
        assert torch.equal(strided, want.values)
        itself = x.clone()
        torch.cummax(itself, 1, out=(itself, indices))
        assert torch.equal(itself, want.values)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_instance_norm(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 8, 19, 23).to(dtype) * 3 + 1
    weight, bias = torch.randn(8).to(dtype), torch.randn(8).to(dtype)
    check(lambda: F.instance_norm(x), "polyop::instance_norm")
    check(lambda: F.instance_norm(x, weight=weight, bias=bias, eps=0.1), "polyop::instance_norm")
    with torch.inference_mode():  # the dispatch key of the override is skipped
        check(lambda: F.instance_norm(x, weight=weight))
    check(lambda: F.instance_norm(changed(x, "channels last"), weight=weight))
    mean, variance = torch.randn(8).to(dtype), torch.rand(8).to(dtype)
    check(lambda: F.instance_norm(x, mean, variance, use_input_stats=False))
    check(lambda: F.instance_norm(x, mean.clone(), variance.clone()))
    layer = torch.nn.InstanceNorm2d(8, affine=True, dtype=dtype)
    check(lambda: layer(x))  # its parameters have gradients
    with torch.no_grad():
        check(lambda: layer(x), "polyop::instance_norm")


# ---- what stays as it is ---------------------------------------------------------------------------


def test_errors_are_pytorchs(small_too: None) -> None:
    x, grid = torch.randn(2, 3, 8, 8), torch.rand(2, 5, 5, 2)
    out = torch.empty(0), torch.empty(0, dtype=torch.int32)
    for wrong in (
        lambda: F.grid_sample(x, grid[:1], align_corners=False),
        lambda: F.grid_sample(x, grid.double(), align_corners=False),
        lambda: torch.grid_sampler_2d(x, grid[..., :1], 0, 0, False),
        lambda: torch.grid_sampler_2d(x[:, :, None], torch.rand(2, 5, 5, 5, 3), 0, 0, False),
        lambda: torch.grid_sampler_3d(x[:, :, None], torch.rand(2, 5, 5, 5, 3), 2, 0, False),
        lambda: torch.grid_sampler_2d(x[:, :, :0], grid, 0, 0, False),
        lambda: torch.grid_sampler_2d(x.int(), grid.int(), 0, 0, False),
        lambda: F.interpolate(x, size=(0, 4), mode="bicubic"),
        lambda: F.interpolate(x[:, :, :0], size=(4, 4), mode="bicubic"),
        lambda: F.interpolate(x[0], size=(4, 4), mode="bicubic"),
        lambda: torch.ops.aten.upsample_bicubic2d(x, [4], False),
        lambda: torch.cummax(x, 4),
        lambda: torch.cummax(x, 1, out=out),
        lambda: torch.cummin(x[:, :0].sum(), 1),
        lambda: torch.cummax(torch.empty(3, 0), 1, out=(torch.empty(0), torch.empty(0))),
        lambda: F.instance_norm(x[:, :, :1, :1]),
        lambda: F.instance_norm(x, weight=torch.ones(4)),
        lambda: F.instance_norm(x, weight=torch.ones(3).double()),
    ):
        want = message(wrong)
        with polyop.accelerate():
            assert message(wrong) == want


def test_empty_tensors(small_too: None) -> None:
    for function in (
        lambda: F.grid_sample(torch.empty(0, 3, 4, 4), torch.empty(0, 5, 5, 2), align_corners=False),
        lambda: F.grid_sample(torch.ones(1, 3, 4, 4), torch.empty(1, 0, 5, 2), align_corners=False),
        lambda: F.interpolate(torch.empty(0, 3, 4, 4), size=(5, 5), mode="bicubic"),
        lambda: torch.cummax(torch.empty(3, 0, 4), 0),
        lambda: torch.cummax(torch.tensor(3.0), 0),
        lambda: F.instance_norm(torch.empty(0, 3, 4, 4)),
    ):
        check(function)


def calls() -> dict[str, Callable[[Tensor], Tensor]]:
    """Returns one call of each operator on x [2, 16, 40, 40], large enough for polyop's kernels."""
    grid = torch.rand(2, 50, 50, 2, generator=torch.Generator().manual_seed(0)) * 2 - 1
    spots = torch.rand(2, 9, 20, 20, 3, generator=torch.Generator().manual_seed(0)) * 2 - 1
    return {
        "grid_sampler_2d": lambda x: F.grid_sample(x, grid, align_corners=False),
        "grid_sampler_3d": lambda x: F.grid_sample(x[:, :, None], spots, align_corners=False),
        "upsample_bicubic2d": lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"),
        "cummax": lambda x: x.cummax(1).values,
        "cummin": lambda x: x.cummin(3).values,
        "instance_norm": lambda x: F.instance_norm(x),
    }


@pytest.fixture(params=list(calls()))
def call(request: pytest.FixtureRequest) -> Callable[[Tensor], Tensor]:
    return calls()[request.param]


def test_gradients(call: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(2, 16, 40, 40, requires_grad=True)
    (want,) = torch.autograd.grad(call(x).square().sum(), x)
    with polyop.accelerate():
        (got,) = torch.autograd.grad(call(x).square().sum(), x)
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)


def test_transforms(call: Callable[[Tensor], Tensor]) -> None:
    x, t = torch.randn(3, 2, 16, 40, 40), torch.randn(2, 16, 40, 40)

    def all_of_them() -> list[Tensor]:
        results = [torch.func.vmap(call)(x), torch.func.grad(lambda y: call(y).square().sum())(x[0])]
        try:
            results += torch.func.jvp(call, (x[0],), (t,))
            with forward_ad.dual_level():
                results += forward_ad.unpack_dual(call(forward_ad.make_dual(x[0], t)))
        except NotImplementedError as error:  # some have no forward-mode derivative
            assert "forward AD" in str(error)  # noqa: PT017 - PyTorch's, with and without
        return results

    want = all_of_them()
    with polyop.accelerate():
        got = all_of_them()
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, rtol=1e-3, atol=1e-3)


def test_meta_and_fake_tensors(call: Callable[[Tensor], Tensor]) -> None:
    with polyop.accelerate(), torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        got = call(torch.empty(2, 16, 40, 40))
    want = call(torch.empty(2, 16, 40, 40))
    assert (got.shape, got.stride(), got.dtype) == (want.shape, want.stride(), want.dtype)


def test_tracing_sees_pytorchs_operators(call: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(2, 16, 40, 40)
    want = make_fx(call)(x).code
    with polyop.accelerate():
        assert make_fx(call)(x).code == want


def test_export_sees_pytorchs_operators() -> None:
    layer, x = torch.nn.InstanceNorm2d(8, affine=True).eval(), torch.randn(2, 8, 20, 20)

    def code() -> str:
        with torch.no_grad():
            return torch.export.export(layer, (x,)).run_decompositions().graph_module.code

    want = code()
    with polyop.accelerate():
        assert code() == want


@pytest.mark.parametrize("backend", ["aot_eager", "inductor", "eager"])
def test_compile(backend: str) -> None:
    x = torch.randn(2, 16, 40, 40)
    functions = list(calls().values())
    want = [f(x) for f in functions]
    torch._dynamo.reset()
    with polyop.accelerate():
        got = torch.compile(lambda y: [f(y) for f in functions], backend=backend, fullgraph=True)(x)
        same(got, want)
        if backend == "eager":
            compiled = torch.compile(functions[2], backend=backend)
            compiled(x)
            assert polyop_ran(lambda: compiled(x)) == {"polyop::bicubic_interpolate"}


def test_threads(call: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(2, 16, 40, 40)
    threads = torch.get_num_threads()
    results: list[Tensor] = []
    with polyop.accelerate():
        try:
            for number in (1, 2):
                torch.set_num_threads(number)
                results.append(call(x))
        finally:
            torch.set_num_threads(threads)
        workers = [threading.Thread(target=lambda: results.append(call(x))) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert len(results) == 6
    assert all(torch.equal(result, results[0]) for result in results)


def test_deterministic_algorithms(call: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(2, 16, 40, 40)
    want = call(x)
    torch.use_deterministic_algorithms(True)
    try:
        with polyop.accelerate():
            same(call(x), want)
    finally:
        torch.use_deterministic_algorithms(False)


# ---- on and off ------------------------------------------------------------------------------------


def kernels() -> list[str]:
    return [torch._C._dispatch_dump(override.name) for override in overrides.OVERRIDES if "aten" in override.name]


def is_on() -> bool:
    return bool(polyop_ran(lambda: torch.cummax(torch.zeros(64, 64), 0)))


def test_on_and_off() -> None:
    before = kernels()
    assert not is_on()
    polyop.accelerate()
    polyop.accelerate()
    assert is_on()
    polyop.accelerate(False)
    polyop.accelerate(False)
    assert not is_on()
    assert kernels() == before


def test_contexts_restore_the_previous_state() -> None:
    with polyop.accelerate():
        with polyop.accelerate():
            assert is_on()
        assert is_on()
        with polyop.accelerate(False):
            assert not is_on()
        assert is_on()
        with pytest.raises(KeyError), polyop.accelerate(False):
            raise KeyError
        assert is_on()
    assert not is_on()
    with pytest.raises(KeyError), polyop.accelerate():
        raise KeyError
    assert not is_on()


def test_prints_nothing() -> None:
    """PyTorch prints no warning, and a program that leaves acceleration on ends normally."""
    text = "import torch, polyop; polyop.accelerate(); torch.cummax(torch.zeros(64, 64), 0)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
