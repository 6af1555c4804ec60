"""Tests that need a GPU: `make gpu` runs them. The tests' helpers lie in tests/."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))


def pytest_configure() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.exit("these tests need a GPU that torch sees; `make test` runs those that do not", returncode=2)
