# SPDX-License-Identifier: Apache-2.0
"""Times functions of torch_scatter and torch_cluster, and what people call without them.

python bench/compat.py [--threads 1,2]     prints a table in Markdown: milliseconds, the minimum of five calls

--torch-cluster LIBRARY and --torch-scatter LIBRARY are these packages' operators, compiled from their source (a shared
library with csrc/knn.cpp, radius.cpp, fps.cpp, scatter.cpp, segment_csr.cpp and their files in csrc/cpu): the rows
then compare with them instead.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import scipy.spatial
import torch
from timing import interleaved

from polyop.compat import torch_cluster, torch_scatter
from polyop.compat.transformers import use_polyop


def best(function: Callable[[], object]) -> float:
    return min(interleaved({"": function}, seconds=10, rounds=5, least=1)[""])


def reduced(src: torch.Tensor, index: torch.Tensor, size: int, name: str) -> torch.Tensor:
    """`torch.scatter_reduce` along the rows."""
    out = torch.zeros(size, src.shape[1])
    return out.scatter_reduce(0, index[:, None].expand_as(src), src, name, include_self=False)


def cases() -> list[tuple[str, str, Callable[[], object], Callable[[], object]]]:
    """Returns a title, the rival's name, our call and the rival's."""
    torch.manual_seed(0)
    src, index = torch.randn(1_000_000, 32), torch.randint(0, 50_000, (1_000_000,))
    ordered = index.sort()[0]
    indptr = torch.searchsorted(ordered, torch.arange(50_001))
    points = torch.rand(1_000_000, 3)
    few = points[:20_000].contiguous()
    tree = scipy.spatial.cKDTree(points.numpy())
    rows = []
    for reduce, name in (("sum", "sum"), ("mean", "mean"), ("max", "amax")):
        rows.append(
            (
                f"scatter {reduce}, 1,000,000 x 32 into 50,000",
                "torch.scatter_reduce",
                lambda reduce=reduce: torch_scatter.scatter(src, index, 0, dim_size=50_000, reduce=reduce),
                lambda name=name: reduced(src, index, 50_000, name),
            )
        )
        rows.append(
            (
                f"segment_csr {reduce}, the same, sorted",
                "torch.scatter_reduce",
                lambda reduce=reduce: torch_scatter.segment_csr(src, indptr, reduce=reduce),
                lambda name=name: reduced(src, ordered, 50_000, name),
            )
        )
    rows.append(
        (
            "knn, 16 of 1,000,000 points for 20,000 queries",
            "scipy.spatial.cKDTree",
            lambda: torch_cluster.knn(points, few, 16),
            lambda: scipy.spatial.cKDTree(points.numpy()).query(few.numpy(), 16, workers=torch.get_num_threads()),
        )
    )
    rows.append(
        (
            "radius 0.02, 1,000,000 points, 20,000 queries",
            "scipy.spatial.cKDTree",
            lambda: torch_cluster.radius(points, few, 0.02, max_num_neighbors=64),
            lambda: tree.query_ball_point(few.numpy(), 0.02, workers=torch.get_num_threads()),
        )
    )
    rows.append(
        (
            "fps, 1 % of 20,000 points",
            "a loop of argmax",
            lambda: torch_cluster.fps(few, ratio=0.01, random_start=False),
            lambda: torch_cluster.fps(few.double(), ratio=0.01, random_start=False),
        )
    )
    return rows + mamba_rows()


def source_rows(
    cluster: str | None, scatter: str | None
) -> list[tuple[str, str, Callable[[], object], Callable[[], object]]]:
    """torch_cluster and torch_scatter, compiled from their source."""
    torch.manual_seed(1)
    rows: list[tuple[str, str, Callable[[], object], Callable[[], object]]] = []
    if cluster:
        torch.ops.load_library(cluster)
        ops = torch.ops.torch_cluster
        points = torch.rand(1_000_000, 3)
        few, ends = points[:20_000].contiguous(), torch.tensor([0, 1_000_000])
        rows += [
            (
                f"knn, 16 of 1,000,000 points for {len(queries):,} queries",
                "torch_cluster",
                lambda queries=queries: torch_cluster.knn(points, queries, 16),
                lambda queries=queries: ops.knn(
                    points, queries, ends, torch.tensor([0, len(queries)]), 16, False, torch.get_num_threads()
                ),
            )
            for queries in (few, points)
        ]
        rows.append(
            (
                "radius 0.02, 1,000,000 points, 20,000 queries",
                "torch_cluster",
                lambda: torch_cluster.radius(points, few, 0.02, max_num_neighbors=64),
                lambda: ops.radius(points, few, ends, torch.tensor([0, 20_000]), 0.02, 64, torch.get_num_threads()),
            )
        )
        rows.append(
            (
                "fps, 0.05 % of 1,000,000 points",
                "torch_cluster",
                lambda: torch_cluster.fps(points, ratio=0.0005, random_start=False),
                lambda: ops.fps(points, ends, torch.tensor(0.0005), False),
            )
        )
    if scatter:
        torch.ops.load_library(scatter)
        ops_of_scatter = torch.ops.torch_scatter
        src, index = torch.randn(1_000_000, 32), torch.randint(0, 50_000, (1_000_000,))
        indptr = torch.searchsorted(index.sort()[0], torch.arange(50_001))
        for name in ("sum", "mean", "max"):
            theirs = getattr(ops_of_scatter, f"segment_{name}_csr")
            rows.append(
                (
                    f"segment_csr {name}, 1,000,000 x 32 into 50,000",
                    "torch_scatter",
                    lambda name=name: torch_scatter.segment_csr(src, indptr, reduce=name),
                    lambda theirs=theirs: theirs(src, indptr, None),
                )
            )
        wide = index[:, None].expand_as(src)
        for name in ("sum", "mean", "max"):
            theirs = getattr(ops_of_scatter, f"scatter_{name}")
            rows.append(
                (
                    f"scatter {name}, 1,000,000 x 32 into 50,000",
                    "torch_scatter",
                    lambda name=name: torch_scatter.scatter(src, index, 0, dim_size=50_000, reduce=name),
                    lambda theirs=theirs: theirs(src, wide, 0, None, 50_000),
                )
            )
    return rows


def mamba_rows() -> list[tuple[str, str, Callable[[], object], Callable[[], object]]]:
    """A layer of Mamba-130M and of Mamba-2-130M over 1,024 tokens, and transformers' own code."""
    from transformers import Mamba2Config, Mamba2Model, MambaConfig, MambaModel

    tokens = torch.randint(1, 100, (1, 1024))

    def run(model: torch.nn.Module) -> Callable[[], object]:
        def call() -> object:
            with torch.no_grad():
                return model(tokens)

        return call

    size: dict[str, Any] = {"num_hidden_layers": 1, "vocab_size": 100, "use_cache": False}
    of_mamba_2 = {**size, "hidden_size": 768, "num_heads": 24, "n_groups": 1, "bos_token_id": 0, "eos_token_id": 0}
    rows: list[tuple[str, str, Callable[[], object], Callable[[], object]]] = []
    layers: list[tuple[str, str, Any, Any]] = [
        ("Mamba, a layer of 1,536 channels, 1,024 tokens", "transformers' loop", MambaModel, MambaConfig(**size)),
        (
            "Mamba 2, a layer of 24 heads of 64, 1,024 tokens",
            "transformers' chunks",
            Mamba2Model,
            Mamba2Config(**of_mamba_2, pad_token_id=0),
        ),
    ]
    for title, rival, kind, config in layers:
        slow, fast = kind(config).eval(), kind(config).eval()
        fast.load_state_dict(slow.state_dict())
        use_polyop(fast)
        rows.append((title, rival, run(fast), run(slow)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--torch-cluster", help="a library of its operators")
    parser.add_argument("--torch-scatter", help="a library of its operators")
    given = parser.parse_args()
    threads = [int(t) for t in given.threads.split(",")]
    from_source = given.torch_cluster or given.torch_scatter
    print("| Call | Threads | polyop | rival | | rival |\n| --- | --- | --- | --- | --- | --- |")
    for title, rival, ours, theirs in source_rows(given.torch_cluster, given.torch_scatter) if from_source else cases():
        for count in threads:
            torch.set_num_threads(count)
            a, b = best(ours), best(theirs)
            print(f"| {title} | {count} | {a:.1f} ms | {b:.1f} ms | {b / a:.1f}x | {rival} |", flush=True)


if __name__ == "__main__":
    main()
