# SPDX-License-Identifier: Apache-2.0
"""The list of tests that `make test` leaves to `make test-rest` names existing tests."""

from __future__ import annotations

import pytest

from tests.support.processes import ROOT
from tests.support.rest import REST, SAMPLED


@pytest.mark.parametrize("name", [*REST, *SAMPLED])
def test_every_entry_exists(name: str) -> None:
    file, _, test = name.partition("::")
    text = (ROOT / "tests" / file).read_text()
    assert not test or f"def {test}(" in text


def test_no_entry_is_listed_twice() -> None:
    assert len(set(REST)) == len(REST)
    assert all(isinstance(SAMPLED[name], int) for name in {*REST} & {*SAMPLED})  # a second number would have no effect
