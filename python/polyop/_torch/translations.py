# SPDX-License-Identifier: Apache-2.0
"""polyop.translations: the translations of PyTorch's own operators, and where they apply."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import torch

from polyop._aten.patches import missing, replaced
from polyop._aten.table import TRANSLATIONS, overload

_entered: ContextVar[tuple[AbstractContextManager[None], ...]] = ContextVar("polyop.translations", default=())


class Translations(dict[torch._ops.OpOverload, Callable[..., Any]]):
    """Decompositions by operator. In a `with` block, torch.onnx.export(…, dynamo=True) of this thread uses them."""

    def __enter__(self) -> None:
        from polyop._torch.onnx_decompositions import REPLACED  # here: torch.export does without the exporter

        block = replaced(REPLACED)
        block.__enter__()
        _entered.set((*_entered.get(), block))

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        *outer, block = _entered.get()
        _entered.set(tuple(outer))
        block.__exit__(None, None, None)
        if error is not None and (lacking := missing()):
            note: Callable[[str], None] = getattr(error, "add_note", warnings.warn)  # Python 3.10 has no notes
            note("\n".join(lacking))


def translations() -> Translations:
    """Returns the decomposition of each of PyTorch's operators that polyop translates, to export models with.

    PyTorch's exporter uses them in a `with` block, as `polyop.export` does:

        with polyop.translations():
            torch.onnx.export(model, args, "model.onnx", dynamo=True)

    This applies to the thread, or the task, that is in the block. Blocks may be nested. What this release of PyTorch
    does not have the functions for is left out: `polyop doctor` names it, and so does a note of an error in the block.

    Other exporters take the decompositions as a table:

        program = torch.export.export(model, args)
        table = {**torch.export.default_decompositions(), **polyop.translations()}
        program = program.run_decompositions(table)

    A decomposition returns NotImplemented for a call that it leaves to PyTorch. It is a function of tensors; the
    exporter's `custom_translation_table` takes functions of onnxscript instead.
    """
    found = ((overload(target), translation.function) for target, translation in TRANSLATIONS.items())
    return Translations((op, function) for op, function in found if op is not None)
