"""Functions that exports replace: each thread has its own, and all are restored."""

from __future__ import annotations

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


def test_a_function_that_does_not_exist_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing() == []
    monkeypatch.delattr(torch.nn.modules.transformer, "_detect_is_causal_mask")
    assert missing() == ["torch.nn.modules.transformer._detect_is_causal_mask: exports lack masks of transformers"]
    with replaced({MASK: lambda original, *args: None}):
        assert not hasattr(torch.nn.modules.transformer, "_detect_is_causal_mask")
    assert not hasattr(torch.nn.modules.transformer, "_detect_is_causal_mask")


class Recurrent(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(3, size, batch_first=True)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cummax(self.dropout(self.lstm(x)[0]), 1)[0]


def test_exports_in_two_threads(tmp_path: Path) -> None:
    """Both succeed, one fails, and everything is as before: functions, warnings, and the mode of the model."""
    torch.onnx  # noqa: B018 (imports polyop's translations)
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
