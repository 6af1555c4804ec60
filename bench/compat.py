"""Times functions of torch_scatter and torch_cluster, and what people call without them.

python bench/compat.py [--threads 1,2]     prints a table in Markdown: milliseconds, the minimum of five calls
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import scipy.spatial
import torch

from polyop.compat import torch_cluster, torch_scatter
from polyop.compat.transformers import use_polyop


def best(function: Callable[[], object]) -> float:
    function()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
        if sum(times) > 10:
            break
    return min(times) * 1e3


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


def mamba_rows() -> list[tuple[str, str, Callable[[], object], Callable[[], object]]]:
    """Mamba's scan and a layer of transformers' Mamba-130M, over 1,024 tokens, and the layer's own loop."""
    from transformers import MambaConfig, MambaModel

    config = MambaConfig(num_hidden_layers=1, vocab_size=100, use_cache=False)
    slow, fast = MambaModel(config).eval(), MambaModel(config).eval()
    fast.load_state_dict(slow.state_dict())
    use_polyop(fast)
    tokens = torch.randint(1, 100, (1, 1024))

    def run(model: torch.nn.Module) -> Callable[[], object]:
        def call() -> object:
            with torch.no_grad():
                return model(tokens)

        return call

    return [("Mamba, a layer of 1,536 channels, 1,024 tokens", "transformers' loop", run(fast), run(slow))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1,2")
    threads = [int(t) for t in parser.parse_args().threads.split(",")]
    print("| Call | Threads | polyop | rival | | rival |\n| --- | --- | --- | --- | --- | --- |")
    for title, rival, ours, theirs in cases():
        for count in threads:
            torch.set_num_threads(count)
            a, b = best(ours), best(theirs)
            print(f"| {title} | {count} | {a:.1f} ms | {b:.1f} ms | {b / a:.1f}x | {rival} |", flush=True)


if __name__ == "__main__":
    main()
