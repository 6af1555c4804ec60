# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import POINTS, integers

cases = Cases(__file__)


@cases.cpu("500,000 integers below {:.0e}", over=[100_000, 2**62])
def _(threads: int, limit: int) -> Contest:
    x = np.random.default_rng(31).integers(0, limit, 500_000)
    ours = session("autoware::Argsort", {"x": x}, threads)
    tx = torch.from_numpy(x)
    theirs = with_torch(lambda: torch.argsort(tx, stable=True))
    return Contest(ours, {"torch argsort(stable)": theirs}, 2 * bytes_of(x), tolerance=0)


@cases.cpu("1,000 rows of 1,000 floats")
def _(threads: int) -> Contest:
    x = normal(7, 1000, 1000)
    ours = session("polyop::Argsort", {"x": x}, threads)
    tx = torch.from_numpy(x)
    theirs = with_torch(lambda: torch.argsort(tx, 1, stable=True))
    return Contest(ours, {"torch argsort(stable)": theirs}, 3 * bytes_of(x), tolerance=0)


cases.gpu("100,000 integers")(
    lambda: call("argsort", torch.randperm(100_000).int()).beside(lambda x: torch.argsort(x, stable=True))
)
cases.growth("numbers", 1000, POINTS)(lambda n: call("argsort", integers(n, n)))
