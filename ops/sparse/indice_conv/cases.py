# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import Call, Cases, of
from inputs import MILLION

import polyop.functional as ops
from ops.sparse.cases import convolution, random_voxels, sparse, sparse_products

cases = Cases(__file__)

cases.growth("voxels", 1000, MILLION)(lambda n: convolution("indice_conv", n))


@cases.gradient("indice_conv 30,000 voxels, 3x3x3, 16 to 32 channels")
def _() -> Call:
    _, pairs, counts, found = ops.get_indice_pairs(random_voxels(), 1, [16, 200, 176], [3] * 3, subm=True)
    return of(
        "indice_conv", [torch.randn(30_000, 16), torch.randn(32, 3, 3, 3, 16), pairs, counts, found], (0, 1), is_subm=1
    )


cases.cpu("street, 60,000 voxels, 3x3x3, submanifold, 64 to 64 channels")(
    lambda threads: sparse_products(threads, "indice_conv")
)
cases.differentiable("100,000 voxels, 3x3x3, 64 channels", capturable=False)(
    lambda dtype: sparse("indice_conv", 64, dtype)
)
cases.small([(5, 2), (3, 1, 3, 1, 2), lambda: torch.randint(0, 5, (2, 3, 4)), torch.tensor([2, 4, 0]), torch.tensor(6)])
cases.small(
    [(5, 2), (3, 1, 3, 1, 2), lambda: torch.randint(0, 5, (2, 3, 4)), torch.tensor([2, 0, 0]), torch.tensor(5)],
    "subm",
    is_subm=True,
)
