"""Tests that need a GPU. `make gpu` runs them; a run of all of tests/ leaves this folder out."""

from __future__ import annotations

import pytest


def pytest_configure() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.exit("these tests need a GPU that torch sees; `make test` runs those that do not", returncode=2)
