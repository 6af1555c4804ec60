# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
import torch.nn.functional as F
from benchmark import F32, Call, Cases, Contest, call, of
from contenders import bytes_of, normal, session, with_torch
from inputs import MILLION, gaussian, uniform

cases = Cases(__file__)


@cases.cpu("1,024 tokens, 1,536 channels, 16 states")
def _(threads: int) -> Contest:
    """A layer of Mamba-130M over 1,024 tokens; the rival is a loop over the tokens."""
    dim, length, states = 1536, 1024, 16
    u, delta, z = (normal(seed, 1, dim, length) for seed in range(3))
    a = -np.tile(np.arange(1, states + 1, dtype=np.float32), (dim, 1))
    b, c = (normal(seed, 1, 1, states, length) for seed in (3, 4))
    feeds = {"u": u, "delta": delta - 3, "A": a, "B": b, "C": c, "D": normal(5, dim), "z": z}
    ours = session("polyop::SelectiveScan", feeds, threads, ["output", "last_state"], attributes={"delta_softplus": 1})
    t = {name: torch.from_numpy(array) for name, array in feeds.items()}

    def formulation() -> tuple[torch.Tensor, torch.Tensor]:
        steps = F.softplus(t["delta"])
        decay = torch.exp(steps[..., None] * t["A"][:, None])
        added = (steps * t["u"])[..., None] * t["B"][0].transpose(1, 2)
        h, outputs = torch.zeros(1, dim, states), []
        for step in range(length):
            h = decay[:, :, step] * h + added[:, :, step]
            outputs.append(h @ t["C"][0, 0, :, step])
        return (torch.stack(outputs, 2) + t["D"][:, None] * t["u"]) * F.silu(t["z"]), h

    return Contest(
        ours, {"torch, step by step": with_torch(formulation)}, bytes_of(u, delta, z) + u.nbytes, tolerance=1e-3
    )


@cases.differentiable("2x1,536, 2,048 steps, 16 states")
def scanned(dtype: torch.dtype, channels: int = 1536, steps: int = 2048) -> Call:
    inputs = [torch.randn(2, channels, steps), torch.rand(2, channels, steps), -torch.rand(channels, 16)]
    inputs += [torch.randn(2, 1, 16, steps) for _ in range(2)]
    return of("selective_scan", [*inputs, None, None, None, None], (0, 1, 2, 3, 4))


cases.gradient("selective_scan 2x512, 1,024 steps, 16 states")(lambda: scanned(F32, 512, 1024))


@cases.growth("steps of 32 channels", 1000, MILLION)
def _(n: int) -> Call:
    states = (-uniform(32, 16), gaussian(1, 1, 16, n), gaussian(1, 1, 16, n))
    return call("selective_scan", gaussian(1, 32, n), uniform(1, 32, n), *states)


cases.small(
    [(2, 4, 5), (2, 4, 5), lambda: -torch.rand(4, 3), (2, 2, 3, 5), (2, 2, 3, 5), (4,), (2, 4, 5), (4,), (2, 4, 3)],
    delta_softplus=True,
)
cases.small(
    [(2, 4, 1), (2, 4, 1), lambda: -torch.rand(4, 3), (2, 1, 3, 1), (2, 1, 3, 1), (4,), (2, 4, 1), (4,), (2, 4, 3)],
    "one-step",
)
