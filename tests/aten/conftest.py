# SPDX-License-Identifier: Apache-2.0
"""Exports of these tests share what PyTorch reads of its registries."""

from __future__ import annotations

import pytest

from tests.support.faster_export import keep_registries


@pytest.fixture(scope="package", autouse=True)
def _share_registries() -> None:
    keep_registries()
