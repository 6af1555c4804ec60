# SPDX-License-Identifier: Apache-2.0
"""polyop.export at other sizes and data than the example's: what it refuses, what it compares, and what it says."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from torch import Tensor

import polyop
from polyop._aten.guards import Guard
from polyop.exporting import comparing, writing
from polyop.exporting.assumptions import Assumptions
from polyop.exporting.declared import Declared
from polyop.exporting.dimensions import given_comparisons, read_dimensions, standard_comparisons
from polyop.exporting.inputs import other_choices, other_inputs
from polyop.exporting.report import RunError
from tests.support.exported_calls import OfTwo

pytestmark = pytest.mark.filterwarnings("ignore")


class Net(torch.nn.Module):
    """A module of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


def line_of(function: Callable[..., Any], offset: int) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


def branch_on_values(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else -x


def branch_on_size(x: Tensor) -> Tensor:
    if x.shape[-1] % 4:
        x = torch.nn.functional.pad(x, (0, 4 - x.shape[-1] % 4))
    return torch.nn.functional.avg_pool1d(x, 4)


def trimmed_after_padding(x: Tensor) -> Tensor:
    rest = -x.shape[-1] % 4
    y = torch.nn.functional.pad(x, (0, rest)).reshape(x.shape[0], -1, 4).cumsum(-1).reshape(x.shape[0], -1)
    return y[:, : x.shape[-1]] if rest > 0 else y


def padded_to(n: int, x: Tensor) -> Tensor:
    return torch.nn.functional.pad(x, (0, n * 4 - x.shape[-1])).reshape(1, n, 4).sum(-1)


def size_as_python_number(x: Tensor) -> Tensor:
    return padded_to(int(math.ceil(x.shape[-1] / 4)), x)  # noqa: RUF046


@functools.cache
def numbers(n: int) -> Tensor:
    return torch.arange(float(n))


def size_as_key(x: Tensor) -> Tensor:
    n = int(math.ceil(x.shape[-1] / 4))  # noqa: RUF046
    return padded_to(n, x) * numbers(n)


def loop_over_size(x: Tensor) -> Tensor:
    state, states = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = 0.5 * state + x[:, t]
        states.append(state)
    return torch.stack(states, 1)


def far_branch(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] > 300 else x + 1


def large_half(x: Tensor) -> Tensor:
    return x * 2 if 0.5 * x.shape[0] > 450 else x + 1


def only_for_many(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] > 1000000 else x + 1


def twice_the_half(x: Tensor) -> Tensor:
    y = torch.nn.functional.interpolate(x[..., 1::2], scale_factor=2.0)
    if y.shape[-1] != x.shape[-1]:
        y = torch.nn.functional.pad(y, (0, 1))
    return torch.cat([x, y], 1)


def at_least_six(x: Tensor) -> Tensor:
    return x[:6] * 2 if x.shape[0] >= 6 else x + 1


class Grid(torch.nn.Module):
    """Keeps positions for the sizes of the last call, and factors for the largest size so far."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: Any = None
        self.length = 0

    def forward(self, x: Tensor) -> Tensor:
        if self.sizes != x.shape:
            self.sizes, self.grid = x.shape, torch.linspace(0, 1, x.shape[1]).expand(x.shape)
        if x.shape[1] > self.length:
            self.length = x.shape[1]
            self.factors = torch.arange(x.shape[1]).cos()
        return torch.cat([x * self.factors[: x.shape[1]], self.grid], 0)


def multiples_of_four(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0] // 4, 4).sum(1) + x[::4]


def export(function: Callable[..., Any], x: Tensor, path: Path, **given: Any) -> polyop.Exported:
    return polyop.export(Net(function), x, path, verbose=False, **given)


# ---- refused -------------------------------------------------------------------------------------------------------


def test_auto_writes_no_branch_of_the_example(tmp_path: Path) -> None:
    """TorchScript's file has one branch, and agrees for the example."""
    with pytest.raises(polyop.ExportError) as error:
        export(branch_on_values, torch.ones(4), tmp_path / "a.onnx")
    text = str(error.value)
    assert f"depends on values of a tensor, at {line_of(branch_on_values, 1)}" in text
    assert f"as the example has it: {line_of(branch_on_values, 1)}: Converting a tensor to a Python boolean" in text
    assert 'exporter="torchscript" writes the file all the same' in text
    assert list(tmp_path.iterdir()) == []


def test_auto_writes_no_loop_of_the_example(tmp_path: Path) -> None:
    with pytest.raises(polyop.ExportError) as error:
        export(loop_over_size, torch.rand(1, 4, 3), tmp_path / "a.onnx", dynamic={"x": {1: "time"}})
    text = str(error.value)
    assert f"needs dimension 1 of 'x' to be 4, the example's, at {line_of(loop_over_size, 2)}" in text
    assert 'exporter="torchscript" writes the file all the same' in text  # which does not warn of loops


def test_the_line_of_a_size_that_an_equal_one_makes_constant(tmp_path: Path) -> None:
    class Numbered(torch.nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            numbers = list(range(x.shape[0]))
            return x + y + torch.tensor(numbers)

    dynamic = {"x": {0: "time"}, "y": {0: "time"}}
    with pytest.raises(polyop.ExportError, match=f"to be 4, the example's, at {line_of(Numbered.forward, 1)}"):
        polyop.export(Numbered(), (torch.rand(4), torch.rand(4)), tmp_path / "a.onnx", dynamic=dynamic, verbose=False)


@pytest.mark.parametrize(
    ("function", "shape", "condition", "at", "advice"),
    [
        (branch_on_size, (1, 1, 16), "(time % 4) == 0", 1, "without a branch"),
        (size_as_key, (1, 16), "math.ceil(time / 4) == 4", 1, "(n + k - 1) // k"),
        (far_branch, (6,), "time <= 300", 1, "torch.cond in place of `if`\nor state the sizes that the model is for: "
         "torch.export.Dim('time', max=300)"),
        (large_half, (6,), "<= 450.0", 1, "torch.export.Dim('time', max=900)"),
        (twice_the_half, (1, 1, 16), "(2*(time // 2)) == time", 2, "2 * torch.export.Dim('time_2')"),
        (at_least_six, (8,), "time >= 6", 1, "torch.export.Dim('time', min=6)"),
    ],
    ids=["branch", "number", "far", "half", "multiples", "least"],
)  # fmt: skip
def test_a_file_of_the_example_size_alone_is_refused(
    function: Callable[..., Any], shape: Sequence[int], condition: str, at: int, advice: str, tmp_path: Path
) -> None:
    axis = len(shape) - 1
    with pytest.raises(polyop.ExportError) as error:
        export(function, torch.rand(shape), tmp_path / "a.onnx", dynamic={"x": {axis: "time"}})
    text = str(error.value)
    assert "a.onnx differs from PyTorch at time " in text
    assert f"(the example has time {shape[-1]})" in text
    assert f"{condition}, at {line_of(function, at)}" in text
    assert advice in text
    assert "sizes={…} chooses other sizes, and check=False" in text
    assert list(tmp_path.iterdir()) == []
    export(function, torch.rand(shape), tmp_path / "a.onnx", dynamic={"x": {axis: "time"}}, check=False)


def branch_on_equal_sizes(x: Tensor, y: Tensor) -> Tensor:
    return x[:, None] * y + (1 if x.shape[0] == y.shape[0] else 2)


def test_sizes_that_are_equal_in_the_example_alone_are_refused(tmp_path: Path) -> None:
    given = (OfTwo(branch_on_equal_sizes), (torch.rand(4), torch.rand(4)), tmp_path / "a.onnx")
    with pytest.raises(polyop.ExportError) as error:
        polyop.export(*given, dynamic={"x": {0: "n"}, "y": {0: "m"}}, verbose=False)
    text = str(error.value)
    assert "differs from PyTorch at n 5, m 4 (the example has n 4, m 4)" in text
    assert f"n == m, at {line_of(branch_on_equal_sizes, 1)}" in text
    assert "or state the sizes that the model is for: one name for n and m, of 'x'[0] and 'y'[0]" in text


def test_equal_sizes_are_compared_unequal_where_pytorch_accepts_them(tmp_path: Path) -> None:
    """The file declares one symbol for both, so that its output's need not be the size of each."""
    given = (OfTwo(torch.add), (torch.rand(4), torch.rand(4)), tmp_path / "a.onnx")
    report = polyop.export(*given, dynamic={"x": {0: "n"}, "y": {0: "m"}}, verbose=False)
    assert report.compared[-2:] == [{"n": 1}, {"m": 1}]
    assert report.not_compared == []


def test_a_declared_shape_of_the_example_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(request: Any, path: Path, *args: Any, **given: Any) -> Any:
        written = writing.write(request, path, *args, **given)
        model = onnx.load(path)
        model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 6
        onnx.save(model, path)
        return written

    monkeypatch.setattr("polyop.exporting.write", write)
    with pytest.raises(polyop.ExportError, match=r"at n 7 .*\n  '.*' is declared to have 6 in dimension 0, got 7\n"):
        export(torch.relu, torch.rand(6), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})


@pytest.mark.parametrize(
    ("outputs", "shapes", "expected"),
    [
        ([["n", 3], ["2*n + 1"], ["Min(7, n)"]], [[4, 3], [9], [4]], ["", "", ""]),
        ([["n"], ["n // 2", 3]], [[5], [2, 4]], ["'n' in dimension 0, which is 4, got 5", "3 in dimension 1, got 4"]),
        ([["2*n"]], [[9]], ["'2*n' in dimension 0, which is 8, got 9"]),
        ([["u0"], ["u0"]], [[9], [8]], ["", "'u0' in dimension 0, which is 9, got 8"]),
        ([["m"], ["2*m"], ["m"]], [[1], [2], [9]], ["", "", "'m' in dimension 0, which is 1, got 9"]),
        ([["n"], [None], [""]], [[4, 4], [1, 2], [3]], ["1 dimensions, got 2", "1 dimensions, got 2", ""]),
    ],
)
def test_shapes_that_a_file_declares(outputs: Sequence[Any], shapes: Sequence[Any], expected: Sequence[str]) -> None:
    value = onnx.helper.make_tensor_value_info
    values = [value(f"y{i}", onnx.TensorProto.FLOAT, shape) for i, shape in enumerate(outputs)]
    graph = onnx.helper.make_graph([], "g", [value("x", onnx.TensorProto.FLOAT, ["n", 2])], values)
    got = Declared.by(graph).contradictions({"x": [4, 2]}, shapes)
    assert got == [text and f"is declared to have {text}" for text in expected]


def several_sizes(x: Tensor) -> tuple[Tensor, ...]:
    return x.cumsum(1).topk(2, 1)[0], x.sum(1, keepdim=True).repeat(1, x.shape[1], 1), torch.stack([x, x], 1), x[:, 1:]


def test_torchscript_declares_no_symbol_of_different_sizes(tmp_path: Path) -> None:
    """PyTorch's exporter declares TopK8_dim_1 as the size of the first and the second output."""
    given = {"dynamic": {"x": {0: "n", 1: "time"}}, "exporter": "torchscript"}
    assert len(export(several_sizes, torch.rand(2, 5, 4), tmp_path / "a.onnx", **given).compared) > 4


def root_as_number(x: Tensor) -> Tensor:
    return x * 2 if math.sqrt(x.shape[0]) > 40 else x + 1


def size_as_divisor(x: Tensor) -> Tensor:
    return x * 2 if math.gcd(x.shape[0], 1009) > 1 else x + 1


def size_in_a_set(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] in {777} else x + 1


def test_a_number_of_a_dynamic_size_is_refused(tmp_path: Path) -> None:
    """No guard has the program's limit, 1600."""
    x, given = torch.rand(6), {"dynamic": {"x": {0: "n"}}}
    with pytest.raises(polyop.ExportError, match=r"(?s)a number of a dynamic size.*n > k \* k in place of") as error:
        export(root_as_number, x, tmp_path / "a.onnx", **given)
    assert f"n == 6, at {line_of(root_as_number, 1)}" in str(error.value)
    assert export(root_as_number, x, tmp_path / "a.onnx", **given, sizes={"n": [5, 1600]}).not_compared == [
        f"all sizes but these: the program makes a number of a size, n == 6, at {line_of(root_as_number, 1)}"
    ]


@pytest.mark.parametrize("function", [size_as_divisor, size_in_a_set])
def test_auto_writes_no_number_of_the_example(function: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    """TorchScript's tracer does not warn, and the file agrees at most sizes."""
    with pytest.raises(polyop.ExportError, match='exporter="torchscript" writes the file all the same'):
        export(function, torch.rand(6), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})


def test_a_dimension_without_another_size_is_refused(tmp_path: Path) -> None:
    weight = torch.rand(6, 2)
    with pytest.raises(
        polyop.ExportError, match=r"(?s)'n' could be compared at no other size than the example's 6"
    ) as e:
        export(lambda x: (x @ weight) if x.shape[1] == 6 else x.no_such_attribute, torch.rand(2, 6), tmp_path / "a.onnx",
               dynamic={"x": {1: "n"}}, exporter="torchscript")  # fmt: skip
    assert "tried n 7: PyTorch: AttributeError" in str(e.value)


def test_wrong_arguments(tmp_path: Path) -> None:
    x, path = torch.rand(2, 3), tmp_path / "a.onnx"
    with pytest.raises(ValueError, match=r"dynamic: 'x': expected an axis in \[0, 2\), got 2"):
        export(torch.relu, x, path, dynamic={"x": {2: "n"}})
    with pytest.raises(ValueError, match=r"dynamic: 'n': expected one size, got 'x'\[1\] of 3 and 'x'\[0\] of 2"):
        export(torch.relu, x, path, dynamic={"x": {0: "n", 1: "n"}})
    with pytest.raises(ValueError, match=r"dynamic: 'x': expected names by axis, such as {0: 'batch'}, got \['n'\]"):
        export(torch.relu, x, path, dynamic={"x": ["n"]})
    with pytest.raises(ValueError, match=r"sizes: expected names of dynamic dimensions \(n\), got m"):
        export(torch.relu, x, path, dynamic={"x": {0: "n"}}, sizes={"m": [3]})
    with pytest.raises(ValueError, match="sizes: 'n': expected sizes of 0 or more, got -1"):
        export(torch.relu, x, path, dynamic={"x": {0: "n"}}, sizes={"n": [-1]})


# ---- written -------------------------------------------------------------------------------------------------------


def test_the_choice_of_torchscript_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    report = export(branch_on_values, torch.ones(4), path, exporter="torchscript")
    noted = {p.key: p.value for p in onnx.load(path).metadata_props}
    assert noted["polyop.exporter"] == "torchscript"
    assert noted["polyop.as_the_example_has_it"].startswith(f"{line_of(branch_on_values, 1)}: Converting a tensor")
    assert "as the example has it: " in report.summary()


def test_auto_falls_back_to_torchscript_where_the_file_is_right(tmp_path: Path) -> None:
    """The dynamo exporter does not take a function of torch.jit; TorchScript's writes its branch as an If."""

    @torch.jit.script
    def branch(x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return -x

    report = export(branch, torch.ones(3, 4), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})
    if report.exporter == "torchscript":
        assert "the dynamo exporter cannot write the model: " in report.summary()
    session = ort.InferenceSession(str(tmp_path / "a.onnx"))
    for sign in (1, -1):
        x = torch.full((2, 4), float(sign))
        assert torch.equal(torch.from_numpy(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]), branch(x))


class Resampled(torch.nn.Module):
    """Pads so that the last window is full, and keeps as many elements as there were: by numbers in tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.stride, self.size = torch.nn.Buffer(torch.tensor(4)), torch.nn.Buffer(torch.tensor(6))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-1]
        windows = torch.ceil((length - self.size + self.stride) / self.stride + 1).to(torch.int64) - 1
        extra = windows * self.stride + self.size - self.stride - length
        x = torch.nn.functional.pad(x, (2, extra)).unfold(-1, 6, 4).sum(-1).repeat_interleave(4, -1)
        x = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=x.shape[1] > 1)
        return x[..., : torch.as_tensor(length) * 3 // 4]


def test_numbers_of_sizes_in_tensors(tmp_path: Path) -> None:
    dynamic = {"x": {1: "time"}}
    report = polyop.export(Resampled(), torch.rand(2, 16), tmp_path / "a.onnx", dynamic=dynamic, verbose=False)
    assert report.exporter == "dynamo"
    assert len(report.compared) > 2
    assert not report.assumes_sizes


def test_numbers_of_sizes_that_float32_rounds(tmp_path: Path) -> None:
    """Of 30 elements, 0.1 are 3 in float32, and more than 3 in float64."""

    def first_tenth(x: Tensor) -> Tensor:
        return x[: torch.ceil(torch.as_tensor(0.1 * x.shape[0])).long()] * 2

    report = export(first_tenth, torch.rand(20), tmp_path / "a.onnx", dynamic={"x": {0: "n"}}, sizes={"n": [30, 31]})
    assert report.exporter == "dynamo"


def rounded_up(x: Tensor) -> Tensor:
    return padded_to(-(-x.shape[-1] // 4), x)


@pytest.mark.parametrize("function", [size_as_python_number, rounded_up])
def test_quotients_of_a_size(function: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    report = export(function, torch.rand(1, 15), tmp_path / "a.onnx", dynamic={"x": {1: "time"}})
    assert report.branches_of == {}
    assert "int" not in globals()


@pytest.mark.parametrize("size", [12, 13])
def test_the_branch_that_is_right_for_all_sizes(size: int, tmp_path: Path) -> None:
    report = export(trimmed_after_padding, torch.rand(2, size), tmp_path / "a.onnx", dynamic={"x": {1: "time"}})
    session = ort.InferenceSession(str(tmp_path / "a.onnx"))
    for other in (12, 13, 5, 1):
        x = torch.rand(2, other)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], trimmed_after_padding(x), rtol=1e-5)
    assert bool(report.branches_of) == (size == 12)
    assert ("branches on sizes: those of time " in report.summary()) == (size == 12)


def padded_or_trimmed(x: Tensor) -> Tensor:
    rest = x.shape[0] % 4
    return x if rest == 0 else x[:-2] if rest == 2 else torch.nn.functional.pad(x, (0, -x.shape[0] % 4))


def test_a_third_branch_besides_the_one_that_is_right_for_two(tmp_path: Path) -> None:
    """The program for odd sizes is right for multiples of 4, too: conditions are those of its sizes."""
    with pytest.raises(polyop.ExportError, match=r"\(n % 4\) == 0"):
        export(padded_or_trimmed, torch.rand(16), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})


def padded_up_to_sixteen(x: Tensor) -> Tensor:
    return torch.nn.functional.pad(x, (0, 16 - x.shape[0])) if x.shape[0] < 16 else x


def test_branches_that_agree_at_the_size_between_them(tmp_path: Path) -> None:
    """Of 16 elements, none are added, as of more."""
    with pytest.raises(polyop.ExportError, match=r"assumed:\n  n <= 15"):
        export(padded_up_to_sixteen, torch.rand(6), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})


def test_a_branch_beyond_one_that_agrees(tmp_path: Path) -> None:
    def stepwise(x: Tensor) -> Tensor:
        n = x.shape[0]
        return x if n < 16 else x.clone() if n < 64 else 2 * x

    with pytest.raises(polyop.ExportError, match=r"at n \d{3,4} (.|\n)*n <= 15"):
        export(stepwise, torch.rand(6), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})


def test_sums_of_a_dim_keep_their_difference(tmp_path: Path) -> None:
    class Shifted(torch.nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x - y[1:]

    n = torch.export.Dim("n")
    report = polyop.export(
        Shifted(), (torch.rand(5), torch.rand(6)), tmp_path / "a.onnx", dynamic={"x": {0: n}, "y": {0: n + 1}},
        verbose=False,
    )  # fmt: skip
    assert len(report.compared) > 3
    assert all(sizes.get("n + 1", 6) == sizes.get("n", 5) + 1 for sizes in report.compared)


def test_a_size_that_the_exporter_declares_wrongly_is_not_declared(tmp_path: Path) -> None:
    """PyTorch's exporter takes u for t + 1, and declares 2*u for t + u."""

    class Shifted(torch.nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return x - y[1:], torch.cat([x, y])

    # The rest of y that is one element would be broadcast: t = 3 with u = 2 does not count.
    inputs = (torch.rand(5), torch.rand(6))
    polyop.export(Shifted(), inputs, tmp_path / "a.onnx", dynamic={"x": {0: "t"}, "y": {0: "u"}}, verbose=False)
    outputs = onnx.load(tmp_path / "a.onnx").graph.output
    assert outputs[1].type.tensor_type.shape.dim[0].WhichOneof("value") is None


def test_offsets_ascend() -> None:
    offsets = torch.tensor([0, 3, 3, 7])
    others = other_inputs(
        {"offsets": offsets}, read_dimensions({"offsets": {0: "b"}}, {"offsets": offsets}), {"b": 9}, {}, 1
    )
    assert others["offsets"].tolist() == sorted(others["offsets"].tolist())
    assert others["offsets"][[0, -1]].tolist() == [0, 7]


def test_a_vector_of_truth_values_selects_something() -> None:
    inputs = {"x": torch.rand(6), "mask": torch.tensor([False, False, True, False, False, False])}
    dimensions = read_dimensions({"x": {0: "n"}, "mask": {0: "n"}}, inputs)
    assert all(other_inputs(inputs, dimensions, {"n": 1}, {}, seed)["mask"].any() for seed in range(20))
    mask = torch.tensor([False, True, True])
    assert all(other_choices({"mask": mask}, {}, seed).get("mask", mask).any() for seed in range(20))


def to_bytes(x: Tensor) -> Tensor:
    return (torch.nn.functional.avg_pool1d(x, 3, 1) * 255).round().to(torch.uint8)


def test_bytes_that_are_rounded_to_another_side(tmp_path: Path) -> None:
    export(to_bytes, torch.rand(1, 64, 4000), tmp_path / "a.onnx", dynamic={"x": {2: "n"}})


def test_errors_that_the_program_catches(tmp_path: Path) -> None:
    """TorchScript's tracer dies of what follows."""

    def blocks(x: Tensor) -> Tensor:
        try:
            return x.view(-1, 8, 4).sum(1)
        except RuntimeError:
            return x.sum(0, keepdim=True)

    for rows in (6, 16):
        with pytest.raises(polyop.ExportError):
            export(blocks, torch.rand(rows, 4), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})


class Difference(torch.nn.Module):
    """The difference from the last call's input, in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        last, self.last = self.last, x
        return x if last is None else x - last


class Delay(torch.nn.Module):
    """Adds what was the input three calls before."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("line", torch.zeros(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        result = x + self.line[0]
        self.line.copy_(torch.cat([self.line[1:], x]))
        return result


@pytest.mark.parametrize(("model", "name"), [(Difference(), "last"), (Delay(), "line")])
def test_state_that_later_calls_need_is_refused(model: torch.nn.Module, name: str, tmp_path: Path) -> None:
    with pytest.raises(
        polyop.ExportError, match=f"a call changes '{name}', on which the outputs of later calls depend"
    ):
        polyop.export(model, torch.rand(1, 4), tmp_path / "a.onnx", verbose=False)


_GRIDS: dict[str, Tensor] = {}


def with_grid(x: Tensor) -> Tensor:
    key = str(x.shape)
    if key not in _GRIDS:
        _GRIDS[key] = torch.arange(x.shape[0])
    return x + _GRIDS[key]


def test_a_global_cache_gets_no_tensors_of_the_capture(tmp_path: Path) -> None:
    for rows in (5, 6):
        export(with_grid, torch.rand(rows), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})
        assert all(type(grid) is Tensor for grid in _GRIDS.values())


def test_the_number_of_chunks_is_no_number_of_a_size(tmp_path: Path) -> None:
    export(lambda x: x.chunk(2)[0], torch.rand(6), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})


def test_a_failure_at_one_element_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unlike a wrong result, it is not silent."""
    run = comparing.File.run

    def fail_at_one(file: comparing.File, tensors: dict[str, Tensor]) -> list[np.ndarray]:
        if 1 in tensors["x"].shape:
            raise RunError("ONNX Runtime cannot run a.onnx")
        return run(file, tensors)

    monkeypatch.setattr(comparing.File, "run", fail_at_one)
    report = export(torch.exp, torch.rand(3, 4), tmp_path / "a.onnx", dynamic={"x": {1: "n"}})
    assert report.not_compared == ["n 1: ONNX Runtime cannot run a.onnx"]
    with pytest.raises(polyop.ExportError, match=r"at n 1 (.|\n)*ONNX Runtime cannot run a.onnx"):
        export(torch.exp, torch.rand(4, 3), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})


def test_a_text_of_a_size_is_reported(tmp_path: Path) -> None:
    def looked_up(x: Tensor) -> Tensor:
        return x * {"16": 2.0}.get(f"{x.shape[0]}", 1.0)

    report = export(looked_up, torch.rand(3), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})
    assert re.search(r"what depends on a size as a text or key, at .*:\d+$", report.not_compared[-1])


def test_a_number_of_bytes_is_refused(tmp_path: Path) -> None:
    """PyTorch's capture refuses it, and the TorchScript exporter would freeze it."""
    with pytest.raises(polyop.ExportError, match=r"Cannot call numel\(\) on tensor with symbolic sizes"):
        export(lambda x: x * (x.nbytes > 1000), torch.rand(3), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})


def test_a_dimension_of_one_element_that_is_removed(tmp_path: Path) -> None:
    def squeezed(x: Tensor) -> Tensor:
        return x.squeeze(1)

    with pytest.raises(polyop.ExportError, match=r"at n 1 (.|\n)*state torch.export.Dim\('n', min=2\)"):
        export(squeezed, torch.rand(3, 4), tmp_path / "a.onnx", dynamic={"x": {1: "n"}})
    export(squeezed, torch.rand(3, 4), tmp_path / "a.onnx", dynamic={"x": {1: torch.export.Dim("n", min=2)}})


def test_sizes_that_pytorch_refuses_are_not_compared(tmp_path: Path) -> None:
    report = export(multiples_of_four, torch.rand(16), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})
    assert {"n": 24} in report.compared or {"n": 18} not in report.compared
    assert all(sizes.get("n", 16) % 4 == 0 for sizes in report.compared)
    assert any(sizes.get("n", 16) != 16 for sizes in report.compared)
    assert "also equal with other data and sizes: n " in report.comparisons()


def test_bounds_of_dim_and_given_sizes_are_compared(tmp_path: Path) -> None:
    x = torch.rand(4, 3)
    report = export(torch.relu, x, tmp_path / "a.onnx", dynamic={"x": {0: torch.export.Dim("n", min=3, max=50)}})
    sizes = {run["n"] for run in report.compared if "n" in run}
    assert {3, 50} <= sizes
    assert min(sizes) == 3
    assert max(sizes) == 50
    report = export(torch.relu, x, tmp_path / "a.onnx", dynamic={"x": {0: "n"}}, sizes={"n": [0, 9]})
    assert report.compared == [{}, {"n": 0}, {"n": 9}]


def test_multiples_are_compared_at_multiples(tmp_path: Path) -> None:
    """The advice for models that halve sizes."""
    time = 4 * torch.export.Dim("time_4", max=12)
    report = export(twice_the_half, torch.rand(1, 1, 16), tmp_path / "a.onnx", dynamic={"x": {2: time}})
    assert report.compared == [{}, {"4*time_4": 20}, {"4*time_4": 12}, {"4*time_4": 48}]


@pytest.mark.parametrize("calls", [(), ((2, 8),), ((1, 3),)], ids=["first", "example", "other"])
def test_a_file_has_no_values_that_the_model_keeps(calls: Sequence[tuple[int, int]], tmp_path: Path) -> None:
    model, x = Grid().eval(), torch.rand(2, 8)
    for shape in calls:
        model(torch.rand(shape))
    dynamic = {"x": {0: "batch", 1: "time"}}
    report = polyop.export(model, x, tmp_path / "a.onnx", dynamic=dynamic, verbose=False)
    assert len(report.compared) > 3
    assert model.sizes == x.shape
    assert len(model.factors) == 8


def test_inputs_that_are_returned_get_names(tmp_path: Path) -> None:
    def both(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x * 2, x, x

    report = export(both, torch.rand(2, 3), tmp_path / "a.onnx", exporter="dynamo", input_names=["x"])
    assert len({o.name for o in report.outputs} | {"x"}) == 4


def test_differences_are_relative_to_the_scale(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1024))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1000)
    report = polyop.export(model, torch.randn(16, 64), tmp_path / "a.onnx", verbose=False)
    assert report.outputs[0].scale > 1e5
    with pytest.raises(polyop.ExportError, match=r"\(scale \d.*\): differs by .*; tolerance: rtol = 0 .*, atol = 0"):
        polyop.export(model, torch.randn(16, 64), tmp_path / "a.onnx", verbose=False, rtol=0, atol=0)


def test_equal_elements_may_be_sorted_in_another_order(tmp_path: Path) -> None:
    """PyTorch's sort on CPUs with AVX2 does not keep the order of equal elements, ONNX's TopK does."""
    torch.manual_seed(0)
    report = export(lambda x: torch.sort(x.round()), torch.randn(8, 20), tmp_path / "a.onnx", dynamic={"x": {1: "n"}})
    assert {"n": 23} in report.compared


def test_sizes_that_depend_on_each_other(tmp_path: Path) -> None:
    class Cached(torch.nn.Module):
        def forward(self, x: Tensor, past: Tensor, mask: Tensor) -> Tensor:
            keys = torch.cat([past, x], 1)
            return (x @ keys.transpose(1, 2)).masked_fill(~mask[:, None], -1e9).softmax(-1) @ keys

    report = polyop.export(
        Cached(),
        (torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.ones(2, 8, dtype=torch.bool)),
        tmp_path / "a.onnx",
        dynamic={"x": {1: "time"}, "past": {1: "past"}, "mask": {1: "total"}},
        verbose=False,
    )
    runs = [{"time": 3, "past": 5, "total": 8, **sizes} for sizes in report.compared]
    assert all(run["total"] == run["time"] + run["past"] for run in runs)
    assert all(len({run[name] for run in runs}) > 2 for name in ("time", "past", "total"))


def test_a_model_that_changes_and_returns_its_input_and_buffer(tmp_path: Path) -> None:
    class Changes(torch.nn.Module):
        last: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("last", torch.zeros(3))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            x += 1
            self.last.copy_(x.sum(0))
            return x, self.last

    x = torch.rand(2, 3)
    before = x.clone()
    report = polyop.export(Changes(), x, tmp_path / "a.onnx", dynamic={"x": {0: "n"}}, verbose=False)
    assert torch.equal(x, before)
    assert {"n": 1} in report.compared


def test_the_error_says_that_a_model_is_random(tmp_path: Path) -> None:
    with pytest.raises(polyop.ExportError, match="PyTorch's own results differ from run to run"):
        export(lambda x: x + torch.rand_like(x), torch.rand(3, 4), tmp_path / "a.onnx")


class Counts(torch.nn.Module):
    """Counts its calls. `step`: what a call adds to the output for each call so far."""

    calls: Tensor

    def __init__(self, step: float) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(1))
        self.register_buffer("calls", torch.zeros(1))
        self.step = step

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.scale + self.step * self.calls


def test_buffers_return_to_their_values_after_one_call(tmp_path: Path) -> None:
    model = Counts(0.0)
    polyop.export(model, torch.rand(3, 2), tmp_path / "a.onnx", dynamic={"x": {0: "n"}}, verbose=False)
    assert model.calls.item() == 1


def test_a_buffer_that_changes_outputs_is_refused(tmp_path: Path) -> None:
    model = Counts(1.0)
    with pytest.raises(polyop.ExportError, match=r"a call changes 'calls', on which the outputs of later calls"):
        polyop.export(model, torch.rand(3, 2), tmp_path / "a.onnx", verbose=False)
    assert model.calls.item() == 1
    assert not (tmp_path / "a.onnx").exists()


class Fuses(torch.nn.Module):
    """Combines the weights of two layers into one, in each call or in the first."""

    def __init__(self, once: bool) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.Linear(3, 2, bias=False))
        self.fused = torch.nn.Linear(4, 2)
        self.once = once

    def forward(self, x: Tensor) -> Tensor:
        result = self.layers(x)
        if not self.once:
            self.fused.weight.data = self.layers[1].weight.data @ self.layers[0].weight.data
        return self.fused(x) + result


def test_a_model_that_assigns_to_the_data_of_a_parameter_is_refused(tmp_path: Path) -> None:
    """PyTorch's capture would die of a segmentation fault."""
    with pytest.raises(polyop.ExportError, match=r"a call assigns to the data of 'fused.weight', which PyTorch cannot"):
        polyop.export(Fuses(once=False), torch.rand(3, 4), tmp_path / "a.onnx", verbose=False)
    polyop.export(Fuses(once=True), torch.rand(3, 4), tmp_path / "a.onnx", verbose=False)


def test_layers_without_their_first_call(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.LazyBatchNorm1d()).eval()
    polyop.export(model, torch.rand(3, 4), tmp_path / "a.onnx", verbose=False)


# ---- sizes and inputs ----------------------------------------------------------------------------------------------


def test_dimensions_of_one_size_get_different_ones() -> None:
    image = torch.rand(1, 3, 32, 32)
    dimensions = read_dimensions({"x": {0: "n", 2: "h", 3: "w"}}, {"x": image})
    first = [dict(c.options[0]) for c in standard_comparisons(dimensions, [])]
    assert first[0] == {"n": 2, "h": 41, "w": 43}
    assert {"n": 1, "h": 37, "w": 32} in [{**s, "h": 37} for s in first]
    assert all(len({s["h"], s["w"]}) == 2 for s in first if s["h"] != 32)
    coupled = [dict(c.options[0]) for c in standard_comparisons(dimensions, [("h", "w")])]
    assert all(s["h"] == s["w"] for s in coupled)


def test_guards_choose_sizes_that_break_them() -> None:
    dimensions = read_dimensions({"x": {0: "n"}}, {"x": torch.rand(8)})
    guards = [Guard("L['x'].size()[0] <= 300", "model.py:7"), Guard("(L['x'].size()[0] % 2) == 0", "")]
    assumptions = Assumptions(guards, dimensions, {"x": "x"})
    chosen = [dict(c.options[0])["n"] for c in assumptions.not_tested(dimensions, [{"n": 8}, {"n": 11}])]
    assert chosen == [302, 308, 2411]
    assert assumptions.broken({"n": 513}) == ["n <= 300, at model.py:7", "(n % 2) == 0"]


@pytest.mark.parametrize(
    ("conditions", "example", "chosen"),
    [
        (["N != 777"], (3,), {"n": 777}),
        (["4*N != 3108"], (3,), {"n": 777}),
        (["N*M <= 5000"], (3, 4), {"n": 3, "m": 1667}),
        (["N*M <= 50000"], (3, 4), {"n": 194, "m": 259}),
        (["N*M != 769"], (3, 4), {"n": 1, "m": 769}),
        (["N != M"], (3, 4), {"n": 4, "m": 4}),
        (["(N % 7) == 3", "N <= 20"], (3,), {"n": 24}),
        (["torch._sym_sqrt(torch.sym_float(N)) <= 40.0"], (3,), {"n": 1601}),
        (["math.trunc(torch.sym_float(N) ** 0.5) <= 40"], (3,), {"n": 1681}),
        (["(800 / min(N, M))*torch.sym_float(max(N, M)) <= 1333.0"], (30, 40), {"n": 24, "m": 40}),
    ],
)
def test_sizes_that_break_a_condition_alone(
    conditions: Sequence[str], example: Sequence[int], chosen: dict[str, int]
) -> None:
    dimensions = read_dimensions({"x": dict(enumerate("nm"[: len(example)]))}, {"x": torch.rand(tuple(example))})
    guards = [Guard(c.replace("N", "L['x'].size()[0]").replace("M", "L['x'].size()[1]"), "") for c in conditions]
    assumptions = Assumptions(guards, dimensions, {"x": "x"})
    compared = [{name: 2 * size for name, size in zip("nm", example, strict=False)}]
    assert chosen in [dict(c.options[0]) for c in assumptions.not_tested(dimensions, compared)]
    assert assumptions.not_evaluated() == []


def test_advice_of_a_dimension_has_no_size_that_breaks_the_condition() -> None:
    dimensions = read_dimensions({"x": {0: "n"}}, {"x": torch.rand(3)})
    assumptions = Assumptions([Guard("L['x'].size()[0] != 777", "")], dimensions, {"x": "x"})
    assert list(assumptions.stated({"n": 777}, dimensions)) == ["torch.export.Dim('n', max=776)"]


def test_a_condition_that_cannot_be_evaluated_is_in_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyop.exporting.conditions._FUNCTIONS", {"__builtins__": {}})
    report = export(large_half, torch.rand(6), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})
    assert report.not_compared == [
        f"the file assumes 0.5*torch.sym_float(n) <= 450.0, at {line_of(large_half, 1)}, which polyop cannot evaluate"
    ]


def test_a_condition_that_only_large_sizes_break_is_in_the_report(tmp_path: Path) -> None:
    report = export(only_for_many, torch.rand(6), tmp_path / "a.onnx", dynamic={"x": {0: "n"}})
    assumed = f"the file assumes n <= 1000000, at {line_of(only_for_many, 1)}"
    assert report.not_compared == [f"n 1000001: the inputs would be too large; {assumed}"]


def test_given_sizes_run_together() -> None:
    dimensions = read_dimensions({"x": {0: "n", 1: "m"}}, {"x": torch.rand(2, 3)})
    runs = [dict(c.options[0]) for c in given_comparisons(dimensions, {"n": [4, 5], "m": [6]})]
    assert runs == [{"n": 4, "m": 6}, {"n": 5, "m": 6}]


def test_other_inputs_stay_in_the_domain_of_the_example() -> None:
    lengths = torch.tensor([5, 3, 1])
    boxes = torch.tensor([[0.0, 1, 1, 9, 9], [1, 2, 2, 8, 5.5], [0, 0, 3, 3, 4]])
    mask = torch.tensor([[1.0, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]])
    images = torch.rand(2, 3, 4, 4)
    tensors = {"lengths": lengths, "boxes": boxes, "mask": mask, "images": images}
    dynamic = {"lengths": {0: "n"}, "boxes": {0: "n"}, "mask": {0: "n", 1: "time"}, "images": {0: "batch"}}
    dimensions = read_dimensions(dynamic, tensors)
    got = other_inputs(tensors, dimensions, {"n": 7, "time": 8, "batch": 1}, {"boxes": "rois"}, 3)
    assert {name: list(t.shape) for name, t in got.items()} == {
        "lengths": [7],
        "boxes": [7, 5],
        "mask": [7, 8],
        "images": [1, 3, 4, 4],
    }
    assert int(got["lengths"].max()) == 8
    assert got["boxes"][:, 0].tolist() == [0.0] * 7  # one image
    assert bool((got["boxes"][:, 1:3] < got["boxes"][:, 3:]).all())
    assert set(got["mask"].unique().tolist()) <= {0.0, 1.0}
    assert float(got["images"].max()) <= 1
    assert not torch.equal(got["images"][0], images[0])


class _Padded(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool2d(torch.nn.functional.pad(x, (0, 1, 0, 1), value=-torch.inf), 3, 2)


def test_a_pool_of_a_padding_declares_dynamic_sizes(tmp_path: Path) -> None:
    """OpenVINO believes the declared sizes."""
    polyop.export(_Padded(), torch.rand(2, 3, 8, 8), tmp_path / "a.onnx", dynamic={"x": {0: "batch"}}, verbose=False)
    graph = onnx.load(tmp_path / "a.onnx").graph
    sizes = [
        [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*graph.value_info, *graph.output)
    ]
    assert sizes[-1] == ["batch", 3, 4, 4]
    assert all("batch" in of for of in sizes if len(of) > 3), sizes
