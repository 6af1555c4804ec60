"""From which size on a replacement pays: below it the call of a custom node, or a copy of the input, costs what the kernel
gains. Sizes are in the unit of the pattern's `Match.work`."""

from __future__ import annotations

LEAST_WORK = {
    "deformable attention": 2_000,  # multiplications: a call that small takes 5 microseconds
}


def pays(pattern: str, work: float) -> bool:
    return work >= LEAST_WORK.get(pattern, 0)
