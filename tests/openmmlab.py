"""mmcv-lite, MMCV without its compiled module, for tests: `mmcv.ops` with polyop as `mmcv._ext`, and mmdet's models."""

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

FOLDER = Path(__file__).resolve().parent.parent / ".deps" / "openmmlab"
MORE = FOLDER.with_name("openmmlab-more")  # older ones, and what is built on them
PACKAGES = ("mmdet", "mmdet3d", "mmseg", "mmocr", "mmrotate", "mmyolo")


@contextmanager
def mmcv_ops(more: bool = False) -> Iterator[ModuleType]:
    """`mmcv.ops`; afterwards neither it nor the compiled module's name is known to the process."""
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
    """As if it were not installed: with spconv, mmdet3d leaves MMCV's sparse convolutions aside."""
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
    """Packages that are built on MMCV, whose models `build` makes; afterwards the process does not know them."""
    with mmcv_ops(more), without("spconv"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for package in packages:
            import_module(f"{package}.models")  # all that makes a model, and no data set
        yield
        for name in [n for n in sys.modules if n.split(".")[0] in PACKAGES]:
            del sys.modules[name]


def _without_pretrained(part: Any) -> None:
    """There is nothing to download in a test."""
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
    """The model of one of a package's configurations, some values of it changed, with random weights."""
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
