# SPDX-License-Identifier: Apache-2.0
"""The package torch_scatter, with its names and arguments, on PyTorch's operators and polyop's segment_csr.

`polyop.compat.install("torch_scatter")` makes `import torch_scatter` find it.
"""

from polyop.compat.torch_scatter.composite import (
    scatter_log_softmax,
    scatter_logsumexp,
    scatter_softmax,
    scatter_std,
)
from polyop.compat.torch_scatter.scatter import (
    scatter,
    scatter_add,
    scatter_max,
    scatter_mean,
    scatter_min,
    scatter_mul,
    scatter_sum,
)
from polyop.compat.torch_scatter.segment_coo import (
    gather_coo,
    segment_add_coo,
    segment_coo,
    segment_max_coo,
    segment_mean_coo,
    segment_min_coo,
    segment_sum_coo,
)
from polyop.compat.torch_scatter.segment_csr import (
    gather_csr,
    segment_add_csr,
    segment_csr,
    segment_max_csr,
    segment_mean_csr,
    segment_min_csr,
    segment_sum_csr,
)

__version__ = "2.1.2"  # whose functions these are

__all__ = [
    "__version__", "gather_coo", "gather_csr", "scatter", "scatter_add", "scatter_log_softmax", "scatter_logsumexp",
    "scatter_max", "scatter_mean", "scatter_min", "scatter_mul", "scatter_softmax", "scatter_std", "scatter_sum",
    "segment_add_coo", "segment_add_csr", "segment_coo", "segment_csr", "segment_max_coo", "segment_max_csr",
    "segment_mean_coo", "segment_mean_csr", "segment_min_coo", "segment_min_csr", "segment_sum_coo", "segment_sum_csr",
]  # fmt: skip
