# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own test databases of operators and modules, and calls that models make: what was right is right.

`make test-all` runs this file as a separate stage, which shares the shards among the processors. The table of what
was right is written by tests/support/pytorch_export.py.
"""

from __future__ import annotations

import json

import pytest

from tests.support.pytorch_export import MAX_SAMPLES, TABLE, rows

SHARDS = 4
# Samples whose translations were worse than PyTorch's own forms.
SAMPLES = ("masked_scatter#1", "cov#2", "squeeze#1", "scatter_add#1", "floor_divide#0", "corrcoef#0")
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


def _worse(names: list[str]) -> list[str]:
    """Returns the samples that PyTorch's exporter alone writes correctly, and not with polyop."""
    found = {row["name"]: row for row in rows([(name, "f32", "static") for name in names])}
    failed = [name for name, row in found.items() if row["status"] not in ("right", "not run")]
    alone = rows([(name, "f32", "static") for name in failed], with_polyop=False)
    worse = [found[row["name"]] for row in alone if row["status"] == "right"]
    return [f"{row['name']}: {row['status']}: {row['reason']}" for row in worse]


def test_samples_are_not_worse_than_without_polyop() -> None:
    worse = _worse(list(SAMPLES))
    assert not worse, "\n".join(worse)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_sample_is_worse_than_without_polyop(shard: int) -> None:
    names = [name for name in sorted(_STATUS) if not name.startswith(("nn.", "model: "))][shard::SHARDS]
    names += [name for name in sorted(_STATUS) if name.startswith("nn.functional.")][shard::SHARDS]
    worse = _worse([f"{name}#{number}" for name in names for number in range(MAX_SAMPLES)])
    assert not worse, "\n".join(worse)
