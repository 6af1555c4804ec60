# SPDX-License-Identifier: Apache-2.0
import numpy as np
import torch
from benchmark import Cases, Contest, call
from contenders import normal, session, with_torch
from inputs import MILLION, gaussian, integers

cases = Cases(__file__)


@cases.cpu("10,000 of 40,000 rows, 6 x 256 channels")
def _(threads: int) -> Contest:
    feat, invalid = normal(32, 6, 40_000, 256), normal(33, 256)
    flags = (np.random.default_rng(34).random(40_000) < 0.2).astype(np.int32)
    ours = session(
        "::SelectAndPadPlugin", {"feat": feat, "flags": flags, "invalid": invalid}, threads, attributes={"P": 10_000}
    )
    tf, tg, tv = (torch.from_numpy(t) for t in (feat, flags, invalid))

    def formulation() -> torch.Tensor:
        some = tf[:, tg.nonzero().squeeze(1)[:10_000]]
        return torch.cat([some, tv.expand(6, 10_000 - some.shape[1], 256)], 1)

    return Contest(ours, {"torch index + cat": with_torch(formulation)}, 2 * 6 * 10_000 * 256 * 4)


cases.growth("rows", 1000, 10 * MILLION)(
    lambda n: call("select_and_pad", gaussian(1, n, 16), integers(2, n), gaussian(16), P=n)
)
