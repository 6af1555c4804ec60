# SPDX-License-Identifier: Apache-2.0
"""Tests that need a GPU. `make gpu` runs them; a run of all of tests/ leaves this folder out.

A file whose variable RUNTIME names a runtime is left out if that is not installed. The run ends with the reasons.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Generator
from pathlib import Path

import pytest


def _find_missing() -> dict[str, str]:
    """Returns the runtimes that are not installed, and how to install them."""
    import onnxruntime

    missing = {}
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        missing["onnxruntime"] = "this ONNX Runtime has no CUDA provider: pip install onnxruntime-gpu"
    if not any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in (12, 13)):
        missing["jax"] = "JAX with CUDA is not installed: pip install 'jax[cuda13]'"
    if not any(importlib.util.find_spec(name) for name in ("tensorrt", "tensorrt_rtx", "tensorrt_rtx_bindings")):
        missing["tensorrt"] = "TensorRT is not installed: pip install tensorrt, or tensorrt-rtx"
    if not importlib.util.find_spec("triton"):
        missing["compile"] = "torch.compile needs Triton: pip install triton"
    source = os.environ.get("POLYOP_MMCV_SOURCE")
    if source is None or not Path(source, "tests", "test_ops").is_dir():
        missing["mmcv"] = "POLYOP_MMCV_SOURCE does not name a checkout of github.com/open-mmlab/mmcv"
    elif absent := [
        name
        for name in ("mmengine", "addict", "cv2", "platformdirs", "termcolor", "yaml", "yapf")
        if not importlib.util.find_spec(name)
    ]:
        missing["mmcv"] = f"MMCV's tests need packages that are not installed: {', '.join(absent)}"
    return missing


MISSING: dict[str, str] = {}
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several processes share the GPU


def pytest_configure(config: pytest.Config) -> None:
    import torch

    if not torch.cuda.is_available() and not config.option.collectonly:
        pytest.exit("these tests need a GPU that torch sees; `make test` runs those that do not", returncode=2)
    MISSING.update(_find_missing())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if getattr(getattr(item, "module", None), "RUNTIME", None) in MISSING]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, reason in MISSING.items():
        terminalreporter.line(f"not run: tests/gpu/test_{name}.py: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """After an illegal access every later call fails. Ends this process then, which pytest-xdist replaces."""
    import torch

    result = yield
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        if hasattr(item.config, "workerinput"):
            os._exit(1)
        pytest.exit(f"{item.nodeid} left the GPU unusable: {error}", returncode=1)
    return result
