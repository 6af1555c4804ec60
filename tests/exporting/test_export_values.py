# SPDX-License-Identifier: Apache-2.0
"""polyop.export of programs that depend on values of tensors, and the integers and truth values that it compares at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import polyop
from polyop.exporting.inputs import other_choices
from tests.support.exported_calls import OfTwo

pytestmark = pytest.mark.filterwarnings("ignore")


def export(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor, path: Path, **given: Any) -> Any:
    return polyop.export(OfTwo(function), (x, y), path, verbose=False, **given)


def sum_if_equal(x: Tensor, y: Tensor) -> Tensor:
    return x + y if torch.equal(x, y) else x - 2 * y


def rows_one_by_one(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack(x[y].unbind(0)).sum(0)


X, CHOSEN = torch.arange(20.0).reshape(5, 4), torch.tensor([True, False, True, False, True])


@pytest.mark.parametrize(
    ("function", "x", "y"),
    [(sum_if_equal, torch.tensor([1, 2, 3]), torch.tensor([1, 2, 4])), (rows_one_by_one, X, CHOSEN)],
    ids=["condition", "rows"],
)
def test_auto_refuses_what_depends_on_values(
    function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor, tmp_path: Path
) -> None:
    line = f"{__file__}:{function.__code__.co_firstlineno + 1}"
    with pytest.raises(polyop.ExportError) as raised:
        export(function, x, y, tmp_path / "a.onnx")
    assert f"depends on values of a tensor, at {line}" in str(raised.value)
    assert 'exporter="torchscript" writes the file all the same' in str(raised.value)
    assert not (tmp_path / "a.onnx").exists()


def test_conditions_that_the_tracer_does_not_warn_of(tmp_path: Path) -> None:
    def all_kinds(x: Tensor, y: Tensor) -> Tensor:
        if torch.equal(x, y) or x.allclose(y) or torch.is_nonzero(y.sum()):
            return x * y
        return x - y

    report = export(all_kinds, torch.rand(3), torch.zeros(3), tmp_path / "a.onnx", exporter="torchscript")
    line = f"{__file__}:{all_kinds.__code__.co_firstlineno + 1}"
    expected = [f"{line}: torch.{name} gives the example's value" for name in ("equal", "allclose", "is_nonzero")]
    assert [w for w in report.warnings if "gives the example" in w] == expected


def test_a_number_of_rows_differs_for_other_data(tmp_path: Path) -> None:
    with pytest.raises(polyop.ExportError, match=r"for other data of the same sizes"):
        export(rows_one_by_one, X, CHOSEN, tmp_path / "a.onnx", exporter="torchscript")


@pytest.mark.parametrize("hidden", [1.0, -1e4, -torch.inf])
def test_masks_of_numbers_differ_for_other_data(hidden: float, tmp_path: Path) -> None:
    def by_number_of_hidden(x: Tensor, y: Tensor) -> Tensor:
        return x * 3 if (y != 0).sum() == 16 else x

    y = torch.where(torch.arange(32).reshape(2, 16) % 2 == 0, hidden, 0.0)
    with pytest.raises(polyop.ExportError, match=r"for other data of the same sizes"):
        export(by_number_of_hidden, torch.rand(2, 16), y, tmp_path / "a.onnx", exporter="torchscript")


def test_the_report_names_inputs_without_other_values(tmp_path: Path) -> None:
    """One whose values ascend, and one whose other values the model refuses."""

    def by_ends(x: Tensor, y: Tensor) -> Tensor:
        return x.cumsum(0)[y]

    report = export(by_ends, X, torch.tensor([0, 2, 4]), tmp_path / "a.onnx")
    assert report.not_compared == ["other values of 'y': none are like the example's"]

    def descending(x: Tensor, y: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() and bool((y.diff() > 0).any()):
            raise ValueError("expected lengths that descend")
        return x * y[:, None]

    report = export(descending, X, torch.tensor([5, 4, 3, 1, 1]), tmp_path / "a.onnx", exporter="dynamo")
    assert report.not_compared == ["other values of 'y': PyTorch: ValueError: expected lengths that descend"]


@pytest.mark.parametrize("seed", range(5))
def test_other_choices_are_like_those_of_the_example(seed: int) -> None:
    example = {
        "rows": torch.tensor([[0, 5, 6], [1, 7, 8], [0, 9, 9], [1, 3, 4]]),
        "unique": torch.tensor([[3, 1, 2, 0]]),
        "range": torch.arange(4),
        "count": torch.tensor(3),
        "offsets": torch.tensor([0, 2, 2, 7]),
        "chosen": CHOSEN,
        "ones": torch.ones(2, 8, dtype=torch.int64),
        "ignored": torch.zeros(2, 8, dtype=torch.bool),
        "images": torch.tensor([1, 0]),
        "real": torch.rand(3),
    }
    got = other_choices(example, {"images": "batch_index"}, seed)
    assert got.keys() == {"rows", "unique", "range", "count", "chosen", "ones", "ignored"}
    assert sorted(got["rows"].tolist()) == sorted(example["rows"].tolist())
    assert sorted(got["unique"][0].tolist()) == [0, 1, 2, 3]
    assert int(got["count"]) == 2
    assert int(got["chosen"].sum()) != int(CHOSEN.sum())
    assert got["ones"][:, 0].tolist() == [1, 1]
    assert got["ones"].dtype == torch.int64
    assert not bool(got["ignored"][:, 0].any())
