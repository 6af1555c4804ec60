# SPDX-License-Identifier: Apache-2.0
"""What exports replace: an import replaces nothing, each thread has its own, and all is restored."""

from __future__ import annotations

import json
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import polyop
from polyop._aten import patches
from polyop._aten.patches import PATCHES, missing, replaced
from tests.support.processes import environment, run

MASK = "torch.nn.modules.transformer:_detect_is_causal_mask"
NMS = "torchvision.ops.boxes:batched_nms"


def _boxes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Replaces torchvision's function, of which other modules have references. Returns one."""
    module = ModuleType("torchvision.ops.boxes")

    def batched_nms(boxes: Any, scores: Any, idxs: Any = None, iou_threshold: float = 0.5) -> Any:
        return boxes, scores, idxs, iou_threshold

    module.batched_nms = batched_nms  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision.ops.boxes", module)
    return batched_nms


class Call(torch.nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def _functions() -> dict[str, Any]:
    found = {name: patches._found(name) for name in PATCHES}
    return {name: getattr(*at) for name, at in found.items() if at is not None}


@pytest.mark.parametrize("name", [MASK, NMS])
def test_a_replacement_applies_to_its_thread(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads are in a block at the same time. The first leaves it first, with an exception."""
    by_code = _boxes(monkeypatch)
    monkeypatch.setattr(torch.nn.modules.transformer, "_detect_is_causal_mask", lambda *args: ("own", *args))
    before = _functions()
    codes = {key: function.__code__ for key, function in before.items() if hasattr(function, "__code__")}
    entered, left = threading.Barrier(3), threading.Event()
    seen: dict[int, list[Any]] = {0: [], 1: []}

    def call() -> Any:
        return by_code("a", "b") if name == NMS else torch.nn.modules.transformer._detect_is_causal_mask("a", "b")

    def work(number: int) -> None:
        try:
            with replaced({name: lambda original, *args: (number, original(*args))}):
                entered.wait(30)
                if number == 1:
                    left.wait(30)
                seen[number].append(call())
                with replaced({name: lambda outer, *args: ("inner", outer(*args))}):
                    seen[number].append(call())
                raise KeyError(number)
        except KeyError:
            seen[number].append(call())

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    own = call()
    for thread in threads:
        thread.start()
    entered.wait(30)
    assert call() == own  # of a thread without a replacement
    threads[0].join()
    left.set()
    threads[1].join()
    for number in (0, 1):
        assert seen[number] == [(number, own), ("inner", (number, own)), own]
    assert call() == own
    assert _functions() == before
    assert all(before[key].__code__ is code for key, code in codes.items())


def _child(*arguments: str) -> list[str]:
    return json.loads(run(sys.executable, "-m", "tests.support.import_child", *arguments, env=environment()))


@pytest.mark.parametrize("first", ["torch.onnx", "polyop"])
def test_an_import_changes_nothing(first: str) -> None:
    """Every function, attribute of a class and entry of a registry is the same as before, except polyop's own, and so
    are the files of PyTorch's exporter outside of `with polyop.translations():`.
    """
    assert _child("changes", first) == []


def test_an_import_needs_none_of_the_functions() -> None:
    assert _child("lacking", ",".join(PATCHES)) == []


def test_an_import_without_each_of_the_functions() -> None:
    assert _child("lacking", *PATCHES) == []


@pytest.mark.parametrize("name", [name for name, patch in PATCHES.items() if not patch.optional])
def test_a_function_that_does_not_exist_is_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing() == []
    found = patches._found(name)
    assert found is not None
    monkeypatch.delattr(*found)
    inherited = hasattr(*found)
    lacking = [] if inherited else [f"{name.replace(':', '.')}: exports lack {PATCHES[name].loses}"]
    assert missing() == lacking
    with polyop.translations():
        assert hasattr(*found) == inherited
    with pytest.raises(KeyError) as error, polyop.translations():
        raise KeyError
    if sys.version_info >= (3, 11):  # errors have notes
        assert getattr(error.value, "__notes__", []) == lacking
    assert hasattr(*found) == inherited


def test_an_export_names_what_pytorch_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("torch.nn.modules.transformer._detect_is_causal_mask")
    lacking = "torch.nn.modules.transformer._detect_is_causal_mask: exports lack masks of transformers"
    x = torch.rand(3)
    with pytest.raises(polyop.ExportError, match=lacking):  # the exporter fails
        polyop.export(Call(lambda x: x.to_sparse() * 2), x, tmp_path / "x.onnx", exporter="dynamo", verbose=False)
    with pytest.raises(polyop.ExportError, match=f"(?s)differ.*{lacking}"):  # the file is wrong
        polyop.export(Call(lambda x: x + id(object()) % 97), x, tmp_path / "x.onnx", verbose=False)


def _operators(model: torch.nn.Module) -> set[str]:
    program = torch.onnx.export(model.eval(), (torch.rand(4, 3),), dynamo=True, verbose=False)
    assert program is not None
    return {f"{node.domain}::{node.op_type}" for node in program.model.graph}


def test_translations_apply_to_their_thread() -> None:
    """While one thread is in the block, or after it left an inner one, another writes PyTorch's own form."""
    model = Call(lambda x: torch.fft.rfft(x).abs())
    inside, done = threading.Event(), threading.Event()

    def work() -> None:
        try:
            with polyop.translations(), polyop.translations():
                inside.set()
                done.wait(120)
                raise KeyError
        except KeyError:
            pass

    thread = threading.Thread(target=work)
    before = _operators(model)
    thread.start()
    inside.wait(60)
    assert _operators(model) == before
    both = polyop.translations()
    with both:
        with both:  # of one object
            pass
        assert "polyop::DFT" in _operators(model) - before
    assert _operators(model) == before
    done.set()
    thread.join()
    assert not patches._active.get()


class Recurrent(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(3, size, batch_first=True)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cummax(self.dropout(self.lstm(x)[0]), 1)[0]


def test_exports_in_two_threads(tmp_path: Path) -> None:
    """Both succeed, one fails, and everything is as before: functions, warnings, and the mode of the model."""
    polyop.export(Recurrent(2), torch.rand(1, 4, 3), tmp_path / "first.onnx", exporter="dynamo", verbose=False)
    before, filters = _functions(), list(warnings.filters)
    model = Recurrent(5).train()
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            x = torch.rand(2, 4, 3 if number < 2 else 7)
            polyop.export(model, x, tmp_path / f"{number}.onnx", exporter="dynamo", verbose=False)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 1, errors
    assert {path.name for path in tmp_path.iterdir()} == {"first.onnx", "0.onnx", "1.onnx"}
    assert _functions() == before
    assert warnings.filters == filters
    assert model.training
    assert model.lstm.training
