# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Cases, Contest, call
from contenders import bytes_of, normal, session, with_torch
from inputs import PIXELS, image

cases = Cases(__file__)


@cases.cpu("{}, 64x512x512, dim {}", over=[("CumSum", 0), ("CumSum", 1), ("CumSum", 2), ("CumProd", 2)])
def _(threads: int, name: str, dim: int) -> Contest:
    x = normal(0, 64, 512, 512)
    ours = session(f"polyop::{name}", {"x": x}, threads, attributes={"axis": dim})
    tx, function = torch.from_numpy(x), getattr(torch, name.lower())
    out = torch.empty_like(tx)
    return Contest(
        ours, {f"torch {name.lower()} (out=)": with_torch(lambda: function(tx, dim, out=out))}, bytes_of(x) * 2
    )


@cases.gpu("running sums of 1,000 x 4,096")
def _() -> Contest:
    x = torch.randn(1000, 4096)
    return Contest(
        lambda: torch.ops.polyop.cumulative(x, axis=-1, mode="sum"),
        reads=[x],
        rivals={"torch": lambda: x.cumsum(-1)},
        same=lambda got, expected: bool(((got - expected).abs() <= 2e-3 * (1 + expected.abs())).all()),
    )


cases.growth("pixels", 128 * 128, PIXELS)(lambda n: call("cumulative", image(n), axis=3))
cases.small([(3, 4, 5)], axis=1, exclusive=1)
cases.small([(3, 4, 5)], "products", axis=1, mode="prod", reverse=1)
