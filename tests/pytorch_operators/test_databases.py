"""PyTorch's own test databases of operators and modules, and calls that models make: what was right is right.

`make test-all` runs this file as a separate stage, which shares the shards among the processors. The table of what
was right is written by tests/support/pytorch_export.py.
"""

from __future__ import annotations

import json

import pytest

from tests.support.pytorch_export import TABLE, rows

SHARDS = 4
_STATUS: dict[str, dict[str, str]] = json.loads(TABLE.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted({kind for found in _STATUS.values() for kind in found}))
@pytest.mark.parametrize("shard", range(SHARDS))
def test_what_was_right_is_right(kind: str, shard: int) -> None:
    dtype, shapes = kind.split()
    names = [name for name, found in sorted(_STATUS.items()) if found.get(kind) == "right"][shard::SHARDS]
    assert names
    found = rows([(name, dtype, shapes) for name in names])
    wrong = [f"{row['name']}: {row['status']}: {row['reason']}" for row in found if row["status"] != "right"]
    assert not wrong, "\n".join(wrong)
