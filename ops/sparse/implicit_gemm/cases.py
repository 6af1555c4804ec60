# SPDX-License-Identifier: Apache-2.0
import torch
from benchmark import F16, F32, Call, Cases, of
from inputs import MILLION

import polyop.functional as ops
from ops.sparse.cases import convolution, random_voxels, sparse, sparse_products

cases = Cases(__file__)

cases.growth("voxels", 1000, MILLION)(lambda n: convolution("implicit_gemm", n))


@cases.gradient("implicit_gemm 30,000 voxels, 3x3x3, 16 to 32 channels")
def _() -> Call:
    _, fwd, mask, order, _ = ops.get_indice_pairs_implicit_gemm(random_voxels(), 1, [16, 200, 176], [3] * 3, subm=True)
    tensors = [torch.randn(30_000, 16), torch.randn(32, 3, 3, 3, 16), fwd, mask, order]
    return of("implicit_gemm", [*tensors, None], (0, 1), is_subm=1)


cases.cpu("street, 60,000 voxels, 3x3x3, submanifold, 64 to 64 channels")(
    lambda threads: sparse_products(threads, "implicit_gemm")
)
cases.differentiable("100,000 voxels, 3x3x3, 64 channels", F32, F16, capturable=False)(
    lambda dtype: sparse("implicit_gemm", 64, dtype)
)
cases.small(
    [(5, 2), (3, 1, 3, 1, 2), lambda: torch.randint(-1, 5, (3, 4)), lambda: torch.zeros(4, 1).long(),
    lambda: torch.arange(4), (3,)], act_type="leaky_relu", act_alpha=0.5,
)  # fmt: skip
