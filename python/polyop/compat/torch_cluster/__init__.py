# SPDX-License-Identifier: Apache-2.0
"""The package torch_cluster, with its names and arguments, on polyop's searches and PyTorch's operators.

`polyop.compat.install("torch_cluster")` makes `import torch_cluster` find it.
"""

from polyop.compat.torch_cluster.fps import fps
from polyop.compat.torch_cluster.graclus import graclus_cluster
from polyop.compat.torch_cluster.grid import grid_cluster
from polyop.compat.torch_cluster.knn import knn, knn_graph
from polyop.compat.torch_cluster.nearest import nearest
from polyop.compat.torch_cluster.radius import radius, radius_graph
from polyop.compat.torch_cluster.rw import random_walk
from polyop.compat.torch_cluster.sampler import neighbor_sampler

__version__ = "1.6.3"  # whose functions these are

__all__ = [
    "__version__", "fps", "graclus_cluster", "grid_cluster", "knn", "knn_graph", "nearest", "neighbor_sampler",
    "radius", "radius_graph", "random_walk",
]  # fmt: skip
