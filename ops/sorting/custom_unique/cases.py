# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, session, with_torch
from inputs import POINTS, integers

cases = Cases(__file__)


@cases.cpu("500,000 integers below {:.0e}", over=[100_000, 2**62])
def _(threads: int, limit: int) -> Contest:
    x = np.random.default_rng(31).integers(0, limit, 500_000)
    ours = session("autoware::CustomUnique", {"x": x}, threads, ["u", "i", "c", "n"])
    tx = torch.from_numpy(x)
    theirs = with_torch(lambda: torch.unique(tx, return_inverse=True, return_counts=True))
    built_in = session("Unique", {"x": x}, threads, ["u", "f", "i", "c"], attributes={"sorted": 1})
    # OpenVINO's Unique takes quadratic time: minutes.
    return Contest(
        ours,
        {"torch unique": theirs, "ONNX Runtime Unique": built_in},
        3 * bytes_of(x),
        same=lambda a, b: all(
            np.array_equal(i, j) for i, j in zip(a[:3], b[-3:] if len(b) == 3 else [b[0], *b[2:]], strict=True)
        ),
    )


cases.growth("numbers", 1000, POINTS)(lambda n: call("custom_unique", integers(n, n)))
