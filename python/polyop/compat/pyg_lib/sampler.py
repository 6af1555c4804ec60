# SPDX-License-Identifier: Apache-2.0
"""Functions of pyg_lib.sampler: samples of neighbours, subgraphs and walks, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from polyop.compat._ranges import ranges
from polyop.compat.torch_cluster.rw import random_walk as _random_walk

__all__ = ["hetero_neighbor_sample", "neighbor_sample", "random_walk", "sample_of_types", "subgraph"]

EdgeType = tuple[str, str, str]


def random_walk(rowptr: Tensor, col: Tensor, seed: Tensor, walk_length: int, p: float = 1.0, q: float = 1.0) -> Tensor:
    """Walks of node2vec from each of `seed` -> vertices [S, walk_length + 1]."""
    rows = torch.arange(rowptr.numel() - 1, dtype=col.dtype, device=col.device).repeat_interleave(rowptr.diff())
    walks = _random_walk(rows, col, seed, walk_length, p, q, False, rowptr.numel() - 1)
    assert isinstance(walks, Tensor)
    return walks


def subgraph(
    rowptr: Tensor, col: Tensor, nodes: Tensor, return_edge_id: bool = True
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The edges between `nodes`: pointers, columns, and the edges' indices."""
    number = torch.full([rowptr.numel() - 1], -1, dtype=col.dtype)
    number[nodes] = torch.arange(nodes.numel(), dtype=col.dtype)
    edge, row = ranges(rowptr[nodes], rowptr[nodes + 1])
    there = number[col[edge]] >= 0
    ends = torch.cat([torch.zeros(1, dtype=torch.long), row[there].bincount(minlength=nodes.numel()).cumsum(0)])
    return ends.to(rowptr.dtype), number[col[edge[there]]], edge[there].to(col.dtype) if return_edge_id else None


@dataclass
class _Nodes:
    """The sampled nodes of a type, in the order in which they are found. A node is found once by each tree.

    There is a tree for each seed if samples are disjoint, otherwise one tree.
    """

    total: int
    node: Tensor
    tree: Tensor
    known: Tensor = field(init=False)
    """The sorted keys of all nodes."""
    position: Tensor = field(init=False)
    """The position of each key's first node."""
    begin: int = 0
    """The nodes of the last hop begin here."""
    per_hop: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        keys, order = self._keys(self.node, self.tree).sort(stable=True)
        first = torch.ones_like(keys, dtype=torch.bool)
        first[1:] = keys[1:] != keys[:-1]
        self.known, self.position = keys[first], order[first]
        self.per_hop = [self.node.numel()]

    def _keys(self, node: Tensor, tree: Tensor) -> Tensor:
        return tree * max(self.total, 1) + node

    def add(self, node: Tensor, tree: Tensor) -> Tensor:
        """Adds the nodes that are not known, and returns the positions of all."""
        keys, inverse = self._keys(node, tree).unique(return_inverse=True)
        first = torch.full(keys.shape, node.numel()).scatter_reduce_(0, inverse, torch.arange(node.numel()), "amin")
        at = torch.searchsorted(self.known, keys)
        inside = at.clamp(max=max(self.known.numel() - 1, 0))
        is_new = torch.ones_like(keys, dtype=torch.bool) if self.known.numel() == 0 else self.known[inside] != keys
        found = first[is_new].sort()[0]
        position = torch.empty_like(keys)
        if self.known.numel() > 0:
            position[~is_new] = self.position[at[~is_new]]
        position[is_new] = self.node.numel() + torch.searchsorted(found, first[is_new])
        self.known, order = torch.cat([self.known, keys[is_new]]).sort()
        self.position = torch.cat([self.position, position[is_new]])[order]
        self.node, self.tree = torch.cat([self.node, node[found]]), torch.cat([self.tree, tree[found]])
        return position[inverse]

    def end_hop(self) -> None:
        self.begin += self.per_hop[-1]
        self.per_hop.append(self.node.numel() - self.begin)

    def last_hop(self) -> Tensor:
        """Returns the positions of the nodes of the last hop."""
        return torch.arange(self.begin, self.begin + self.per_hop[-1])


@dataclass
class _Edges:
    rows: list[Tensor] = field(default_factory=list)
    columns: list[Tensor] = field(default_factory=list)
    numbers: list[Tensor] = field(default_factory=list)
    per_hop: list[int] = field(default_factory=list)


def _choose(
    rowptr: Tensor, nodes: Tensor, count: int, replace: bool, weight: Tensor | None, allowed: Tensor | None,
    age: Tensor | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Returns edges of the nodes, and the index of the node of each: `count` edges of each node, or all if it is
    negative or greater than their number.

    `allowed` omits edges, by a mask over those of all nodes. With `age`, the `count` largest are chosen.
    """
    edge, group = ranges(rowptr[nodes], rowptr[nodes + 1])
    if allowed is not None:
        edge, group = edge[allowed], group[allowed]
        age = None if age is None else age[allowed]
    if count < 0:
        return edge, group
    if replace and age is None:
        return _with_replacement(edge, group, nodes.numel(), count, weight)
    if age is not None:
        key = -age.double()
    else:
        key = torch.rand(edge.numel(), dtype=torch.float64)
        if weight is not None:  # Efraimidis and Spirakis, Weighted random sampling with a reservoir, 2006
            key = -key.log() / weight[edge].double()
    order = key.argsort(stable=True)
    order = order[group[order].argsort(stable=True)]
    rank = torch.arange(order.numel()) - torch.searchsorted(group, group)
    chosen = order[rank < count].sort()[0]
    return edge[chosen], group[chosen]


def _with_replacement(
    edge: Tensor, group: Tensor, nodes: int, count: int, weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    sizes = group.bincount(minlength=nodes)
    rows = torch.arange(nodes).repeat_interleave(torch.where(sizes > 0, count, 0))
    mass = torch.ones(edge.numel(), dtype=torch.float64) if weight is None else weight[edge].double()
    ends = torch.cat([torch.zeros(1, dtype=torch.float64), mass.cumsum(0)])
    last = sizes.cumsum(0)
    low, high = ends[(last - sizes)[rows]], ends[last[rows]]
    drawn = torch.searchsorted(ends[1:], low + torch.rand(rows.numel(), dtype=torch.float64) * (high - low), right=True)
    drawn = torch.minimum(torch.maximum(drawn, (last - sizes)[rows]), last[rows] - 1)
    return edge[drawn], rows


def _check(function: str, directed: bool, disjoint: bool, strategy: str, timed: bool, both: bool, seeds: bool) -> None:
    if not directed:
        raise ValueError(f"{function}: directed: expected True; torch.ops.pyg.subgraph returns induced subgraphs")
    if strategy not in ("uniform", "last"):
        raise ValueError(f"{function}: temporal_strategy: expected 'uniform' or 'last', got '{strategy}'")
    if timed and not disjoint:
        raise ValueError(f"{function}: disjoint: expected True for samples by time")
    if both:
        raise ValueError(f"{function}: expected one of node_time, edge_time and edge_weight")
    if not seeds:
        raise ValueError(f"{function}: seed_time: expected a tensor for edge_time")


def sample_of_types(
    node_types: Sequence[str], edge_types: Sequence[EdgeType], rowptr_dict: dict[str, Tensor],
    col_dict: dict[str, Tensor], seed_dict: dict[str, Tensor], num_neighbors_dict: dict[str, list[int]],
    node_time_dict: dict[str, Tensor] | None = None, edge_time_dict: dict[str, Tensor] | None = None,
    seed_time_dict: dict[str, Tensor] | None = None, edge_weight_dict: dict[str, Tensor] | None = None,
    csc: bool = False, replace: bool = False, directed: bool = True, disjoint: bool = False,
    temporal_strategy: str = "uniform", return_edge_id: bool = True,
) -> tuple[
    dict[str, Tensor], dict[str, Tensor], dict[str, Tensor], dict[str, Tensor] | None, dict[str, list[int]],
    dict[str, list[int]],
]:  # fmt: skip
    """torch.ops.pyg.hetero_neighbor_sample. An edge type is named "source__relation__target".

    Where pyg_lib needs neighbours that are sorted by time, this function does not.
    """
    node_times, edge_times, weights = node_time_dict or {}, edge_time_dict or {}, edge_weight_dict or {}
    _check(
        "neighbor_sample", directed, disjoint, temporal_strategy, bool(node_times or edge_times),
        sum(map(bool, (node_times, edge_times, weights))) > 1, not edge_times or bool(seed_time_dict),
    )  # fmt: skip
    if any(t.device.type != "cpu" for t in (*rowptr_dict.values(), *col_dict.values(), *seed_dict.values())):
        raise ValueError("neighbor_sample: rowptr, col, seed: expected tensors on the CPU")
    totals = dict.fromkeys(node_types, 0)
    for kind in edge_types:
        name, start, end = "__".join(kind), *((kind[2], kind[0]) if csc else (kind[0], kind[2]))
        totals[start] = max(totals[start], rowptr_dict[name].numel() - 1)
        totals[end] = max(totals[end], int(col_dict[name].max()) + 1 if col_dict[name].numel() > 0 else 0)
    trees, times, nodes = 0, [], {}
    for name in node_types:
        nodes[name] = _Nodes(totals[name], torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long))
    for name, seed in seed_dict.items():
        seed = seed.long()
        totals[name] = max(totals[name], int(seed.max()) + 1 if seed.numel() > 0 else 0)
        tree = torch.arange(trees, trees + seed.numel()) if disjoint else torch.zeros_like(seed)
        nodes[name] = _Nodes(totals[name], seed, tree)
        trees += seed.numel()
        if seed_time_dict:
            times.append(seed_time_dict[name])
        elif node_times:
            times.append(node_times[name][seed])
    deadline = torch.cat(times) if times else None
    edges = {"__".join(kind): _Edges() for kind in edge_types}
    for hop in range(max((len(num_neighbors_dict[name]) for name in edges), default=0)):
        for kind in edge_types:
            name, start, end = "__".join(kind), *((kind[2], kind[0]) if csc else (kind[0], kind[2]))
            rowptr, col, sources = rowptr_dict[name].long(), col_dict[name].long(), nodes[start]
            frontier = sources.last_hop()
            allowed = age = None
            if deadline is not None and (name in edge_times or end in node_times):
                edge, group = ranges(rowptr[sources.node[frontier]], rowptr[sources.node[frontier] + 1])
                time = edge_times[name][edge] if name in edge_times else node_times[end][col[edge]]
                allowed = time <= deadline[sources.tree[frontier][group]]
                age = time if temporal_strategy == "last" else None
            count = num_neighbors_dict[name][hop]
            edge, group = _choose(rowptr, sources.node[frontier], count, replace, weights.get(name), allowed, age)
            edges[name].rows.append(frontier[group])
            edges[name].columns.append(nodes[end].add(col[edge], sources.tree[frontier][group]))
            edges[name].numbers.append(edge)
            edges[name].per_hop.append(edge.numel())
        for of_type in nodes.values():
            of_type.end_hop()

    kind = next((t.dtype for t in (*seed_dict.values(), *rowptr_dict.values())), torch.long)

    def joined(parts: list[Tensor]) -> Tensor:
        return torch.cat([torch.zeros(0, dtype=torch.long), *parts]).to(kind)

    rows = {name: joined(found.rows) for name, found in edges.items()}
    columns = {name: joined(found.columns) for name, found in edges.items()}
    return (
        columns if csc else rows,
        rows if csc else columns,
        {k: (torch.stack([v.tree, v.node], 1) if disjoint else v.node).to(kind) for k, v in nodes.items()},
        {name: joined(found.numbers) for name, found in edges.items()} if return_edge_id else None,
        {name: of_type.per_hop for name, of_type in nodes.items()},
        {name: found.per_hop for name, found in edges.items()},
    )


def neighbor_sample(
    rowptr: Tensor, col: Tensor, seed: Tensor, num_neighbors: list[int], node_time: Tensor | None = None,
    edge_time: Tensor | None = None, seed_time: Tensor | None = None, edge_weight: Tensor | None = None,
    csc: bool = False, replace: bool = False, directed: bool = True, disjoint: bool = False,
    temporal_strategy: str = "uniform", return_edge_id: bool = True,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, list[int], list[int]]:  # fmt: skip
    """Samples neighbours of `seed`, then theirs, a number for each hop, -1 for all -> rows, columns, nodes ([N, 2] with
    their seed if disjoint), the edges' indices, and the numbers of nodes and of edges per hop."""

    def of_type(name: str, value: Tensor | None) -> dict[str, Tensor] | None:
        return None if value is None else {name: value}

    row, column, node, edge, nodes, edges = sample_of_types(
        ["n"], [("n", "e", "n")], {"n__e__n": rowptr}, {"n__e__n": col}, {"n": seed}, {"n__e__n": list(num_neighbors)},
        of_type("n", node_time), of_type("n__e__n", edge_time), of_type("n", seed_time),
        of_type("n__e__n", edge_weight), csc, replace, directed, disjoint, temporal_strategy, return_edge_id,
    )  # fmt: skip
    name = "n__e__n"
    return row[name], column[name], node["n"], edge[name] if edge is not None else None, nodes["n"], edges[name]


def hetero_neighbor_sample(
    rowptr_dict: dict[EdgeType, Tensor], col_dict: dict[EdgeType, Tensor], seed_dict: dict[str, Tensor],
    num_neighbors_dict: dict[EdgeType, list[int]], node_time_dict: dict[str, Tensor] | None = None,
    edge_time_dict: dict[EdgeType, Tensor] | None = None, seed_time_dict: dict[str, Tensor] | None = None,
    edge_weight_dict: dict[EdgeType, Tensor] | None = None, csc: bool = False, replace: bool = False,
    directed: bool = True, disjoint: bool = False, temporal_strategy: str = "uniform", return_edge_id: bool = True,
) -> tuple[
    dict[EdgeType, Tensor], dict[EdgeType, Tensor], dict[str, Tensor], dict[EdgeType, Tensor] | None,
    dict[str, list[int]], dict[EdgeType, list[int]],
]:  # fmt: skip
    """`neighbor_sample` of a graph with several types of nodes and of edges."""
    kinds = list(rowptr_dict)
    names = {"__".join(kind): kind for kind in kinds}

    def named(values: dict[EdgeType, Tensor] | None) -> dict[str, Tensor] | None:
        return None if values is None else {"__".join(kind): value for kind, value in values.items()}

    rows, columns, nodes, edges, nodes_per_hop, edges_per_hop = sample_of_types(
        sorted({kind[0] for kind in kinds} | {kind[2] for kind in kinds}), kinds, named(rowptr_dict) or {},
        named(col_dict) or {}, seed_dict, {"__".join(k): list(v) for k, v in num_neighbors_dict.items()},
        node_time_dict, named(edge_time_dict), seed_time_dict, named(edge_weight_dict), csc, replace, directed,
        disjoint, temporal_strategy, return_edge_id,
    )  # fmt: skip
    return (
        {names[k]: v for k, v in rows.items()},
        {names[k]: v for k, v in columns.items()},
        nodes,
        None if edges is None else {names[k]: v for k, v in edges.items()},
        nodes_per_hop,
        {names[k]: v for k, v in edges_per_hop.items()},
    )
