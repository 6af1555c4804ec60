# SPDX-License-Identifier: Apache-2.0
"""Random walks. TorchScript compiles this function."""

import torch
from torch import Tensor


def random_walk(
    row: Tensor,
    col: Tensor,
    start: Tensor,
    walk_length: int,
    p: float = 1,
    q: float = 1,
    coalesced: bool = True,
    num_nodes: int | None = None,
    return_edge_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Walks of node2vec from each of `start` -> vertices [S, walk_length + 1], and with return_edge_indices the edges
    [S, walk_length], -1 where a walk stays because a vertex has none.

    The likelihood of a return is 1 / p, and that of a vertex that is no neighbour of the previous one 1 / q.
    """
    if num_nodes is None:
        num_nodes = max(int(row.max()), int(col.max()), int(start.max())) + 1
    if coalesced:
        order = (row * num_nodes + col).argsort()
        row, col = row[order], col[order]
    ends = torch.cat([row.new_zeros([1]), row.bincount(minlength=num_nodes).cumsum(0)])
    known = (row * num_nodes + col).sort()[0]
    nodes = [start]
    edges: list[Tensor] = []
    previous = start
    for step in range(walk_length):
        here = nodes[-1]
        degree = ends[here + 1] - ends[here]
        edge = torch.full_like(here, -1)
        undecided = degree > 0
        while bool(undecided.any()):
            drawn = ends[here] + (torch.rand(here.shape, device=here.device) * degree).long()
            drawn = torch.minimum(drawn, ends[here + 1] - 1)
            accepted = undecided
            if step > 0 and (p != 1 or q != 1):
                there = col[drawn.clamp(min=0)]
                pair = there * num_nodes + previous
                position = torch.searchsorted(known, pair).clamp(max=max(known.numel() - 1, 0))
                likelihood = torch.where(known[position] == pair, 1.0, 1.0 / q)
                likelihood = torch.where(there == previous, 1.0 / p, likelihood)
                likelihood = likelihood / max(1.0, 1.0 / p, 1.0 / q)
                accepted = undecided & ((torch.rand(here.shape, device=here.device) < likelihood) | (degree == 1))
            edge = torch.where(accepted, drawn, edge)
            undecided = undecided & ~accepted
        edges.append(edge)
        nodes.append(torch.where(edge >= 0, col[edge.clamp(min=0)] if col.numel() > 0 else here, here))
        previous = here
    walks = torch.stack(nodes, 1)
    if return_edge_indices:
        return walks, torch.stack(edges, 1) if walk_length > 0 else walks[:, :0]
    return walks
