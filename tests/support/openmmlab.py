# SPDX-License-Identifier: Apache-2.0
"""`mmcv.ops` of mmcv-lite, which is MMCV without its compiled module, with polyop as `mmcv._ext`; models of mmdet."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from tests.support.processes import ROOT

FOLDER = ROOT / ".deps" / "openmmlab"
MORE = FOLDER.with_name("openmmlab-more")  # older packages, and packages that need them
PACKAGES = ("mmdet", "mmdet3d", "mmseg", "mmocr", "mmrotate", "mmyolo")


@contextmanager
def mmcv_ops(more: bool = False) -> Iterator[ModuleType]:
    """Yields `mmcv.ops`. Afterwards neither mmcv nor mmengine is imported."""
    folders = [MORE, FOLDER] if more else [FOLDER]
    for folder in folders:
        assert (folder / "mmcv").is_dir(), f"{folder} is missing: run tools/test_openmmlab.sh"
    import polyop.compat.mmcv

    polyop.compat.mmcv.install()
    sys.path.extend(map(str, folders))
    try:
        import mmcv.ops

        yield mmcv.ops
    finally:
        for folder in folders:
            sys.path.remove(str(folder))
        for name in [n for n in sys.modules if n.split(".")[0] in ("mmcv", "mmengine")]:
            del sys.modules[name]


@contextmanager
def without(package: str) -> Iterator[None]:
    """Hides a package. With spconv installed, mmdet3d does not use MMCV's sparse convolutions."""
    before = sys.modules.get(package)
    sys.modules[package] = None
    try:
        yield
    finally:
        del sys.modules[package]
        if before is not None:
            sys.modules[package] = before


@contextmanager
def models_of(*packages: str, more: bool = False) -> Iterator[None]:
    """Imports packages that need MMCV, for `build`. Afterwards they are not imported."""
    with mmcv_ops(more), without("spconv"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in packages:
            import_module(f"{package}.models")  # everything that models need; no data sets
        yield
        for name in [n for n in sys.modules if n.split(".")[0] in PACKAGES]:
            del sys.modules[name]


def _without_pretrained(part: Any) -> None:
    """Removes references to pretrained weights: tests download nothing."""
    if isinstance(part, dict):
        if isinstance(part.get("init_cfg"), dict) and part["init_cfg"].get("type") == "Pretrained":
            del part["init_cfg"]
        part.pop("pretrained", None)
        for value in part.values():
            _without_pretrained(value)
    elif isinstance(part, list | tuple):
        for value in part:
            _without_pretrained(value)


def build(name: str, changes: dict[str, Any] | None = None, package: str = "mmdet") -> nn.Module:
    """Returns the model of a package's configuration `name`, with `changes` merged into it, with random weights."""
    from mmengine.config import Config
    from mmengine.registry import MODELS, init_default_scope

    init_default_scope(package)
    torch.manual_seed(0)
    folder = Path(str(import_module(f"{package}.models").__file__)).parent.parent
    whole = Config.fromfile(str(folder / ".mim" / "configs" / name))
    whole.merge_from_dict(changes or {})
    configuration = whole.model
    _without_pretrained(configuration)
    return MODELS.build(configuration)


def total(losses: dict[str, torch.Tensor | list[torch.Tensor]]) -> torch.Tensor:
    return sum((v if isinstance(v, torch.Tensor) else sum(v)).mean() for name, v in losses.items() if "loss" in name)
