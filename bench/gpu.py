"""Times every operator that has a rival on the GPU, at the sizes of bench/cases/, compared with the kernels of torch
and torchvision.

Times are CUDA events around many calls, interleaved with the rivals', minimum and median. Limits are measured on this
GPU: the bandwidth of a copy, and torch's matrix product in the same type.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import track
from rich.table import Table

import polyop

try:
    import torchvision
except (ImportError, RuntimeError) as error:
    torchvision = None
    print(f"torchvision is not a rival here: {error}")

Call = Callable[[], object]
DEVICE = "cuda"


@dataclass
class Contest:
    """An operator at one size, and its rivals."""

    name: str
    sizes: str
    moved: float  # bytes that must be moved
    ours: Call
    rivals: dict[str, Call] = field(default_factory=dict)
    flops: float = 0  # of matrix products
    dtype: torch.dtype = torch.float32


@dataclass
class Row:
    name: str
    sizes: str
    min_ms: float
    median_ms: float
    of_bandwidth: float
    of_arithmetic: float
    rivals: dict[str, float]


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, device=DEVICE, dtype=dtype)


def boxes_of(count: int) -> torch.Tensor:
    corner, size = torch.rand(count, 2, device=DEVICE) * 800, 16 + torch.rand(count, 2, device=DEVICE) * 300
    return torch.cat([corner, corner + size], 1)


def of_torchvision(name: str, call: Callable[[Any], object]) -> dict[str, Call]:
    return {} if torchvision is None else {"torchvision": lambda: call(getattr(torchvision.ops, name))}


def elementwise() -> Iterator[Contest]:
    ops = torch.ops.polyop
    line, small = random(64, 100000), random(8, 64, 128, 128)
    yield Contest("my_add", "64 x 100000", 3 * line.nbytes, lambda: ops.my_add(line, line),
                  {"torch": lambda: torch.add(line, line, alpha=2)})  # fmt: skip
    yield Contest("cummax", "64 x 100000", 4 * line.nbytes, lambda: ops.cummax(line, dim=1),
                  {"torch": lambda: torch.cummax(line, 1)})  # fmt: skip
    scale = small[0, :, 0, 0].contiguous()
    yield Contest("instance_norm", "8x64x128x128", 2 * small.nbytes, lambda: ops.instance_norm(small, scale, scale),
                  {"torch": lambda: F.instance_norm(small, weight=scale, bias=scale)})  # fmt: skip


def sampling() -> Iterator[Contest]:
    x, boxes = random(1, 256, 200, 304), boxes_of(1000)
    rois = torch.cat([torch.zeros(1000, 1, device=DEVICE), boxes], 1)
    yield Contest("roi_align", "256x200x304, 1000 rois, 7x7", x.nbytes + 1000 * 256 * 49 * 4,
                  lambda: polyop.roi_align(x, rois, 7, spatial_scale=0.25, sampling_ratio=2, aligned=True),
                  of_torchvision("roi_align", lambda rival: rival(x, rois, 7, 0.25, 2, True)))  # fmt: skip
    grid, image = torch.rand(1, 512, 512, 2, device=DEVICE) * 2 - 1, random(1, 64, 512, 512)
    for mode in ("bilinear", "nearest", "bicubic"):
        yield Contest(f"grid_sample {mode}", "64x512x512", 2 * image.nbytes + grid.nbytes,
                      lambda mode=mode: polyop.grid_sample(image, grid, mode=mode, align_corners=False),
                      {"torch": lambda mode=mode: F.grid_sample(
                          image, grid, mode=mode, align_corners=False)})  # fmt: skip


def deformable(dtype: torch.dtype) -> Iterator[Contest]:
    kind = name_of(dtype)
    features, weight = random(1, 256, 64, 64, dtype=dtype), random(256, 256, 3, 3, dtype=dtype) * 0.02
    offset, mask = random(1, 18, 64, 64, dtype=dtype), torch.rand(1, 9, 64, 64, device=DEVICE, dtype=dtype)
    yield Contest("modulated_deform_conv2d", f"256x64x64, 3x3, {kind}", 2 * features.nbytes + weight.nbytes,
                  lambda: polyop.modulated_deform_conv2d(features, offset, mask, weight, padding=1),
                  of_torchvision("deform_conv2d", lambda rival: rival(features, offset, weight, padding=1, mask=mask)),
                  2 * weight.numel() * 64 * 64, dtype)  # fmt: skip
    q = random(8, 900, 64, dtype=dtype)
    yield Contest("scaled_dot_product_attention", f"8x900x64, {kind}", 4 * q.nbytes + 8 * 900 * 900 * q.itemsize,
                  lambda: torch.ops.polyop.scaled_dot_product_attention(q, q, q, None),
                  {"torch": lambda: torch.softmax(q @ q.mT / 8, -1) @ q}, 4 * 8 * 900 * 900 * 64, dtype)  # fmt: skip
    sizes = [(100, 134), (50, 67), (25, 34), (13, 17)]
    shapes, areas = torch.tensor(sizes, device=DEVICE), torch.tensor([h * w for h, w in sizes], device=DEVICE)
    spatial, queries = int(areas.sum()), 900
    value = random(1, spatial, 8, 32, dtype=dtype)
    locations = torch.rand(1, queries, 8, 4, 4, 2, device=DEVICE, dtype=dtype)
    weights = torch.softmax(random(1, queries, 8, 16, dtype=dtype), -1).unflatten(-1, (4, 4))
    starts = areas.cumsum(0) - areas

    def by_grid_sample() -> torch.Tensor:  # as transformers does without a kernel
        grids = 2 * locations - 1
        sampled = []
        for level, part in enumerate(value.split([h * w for h, w in sizes], 1)):
            height, width = sizes[level]
            plane = part.flatten(2).transpose(1, 2).reshape(8, 32, height, width)
            grid = grids[:, :, :, level].transpose(1, 2).flatten(0, 1)
            sampled.append(F.grid_sample(plane, grid, align_corners=False))
        weight_of = weights.transpose(1, 2).reshape(8, 1, queries, 16)
        return (torch.stack(sampled, -2).flatten(-2) * weight_of).sum(-1).view(1, 256, queries).transpose(1, 2)

    yield Contest("ms_deform_attn", f"900 queries, 4 levels, {kind}", value.nbytes + locations.nbytes + weights.nbytes,
                  lambda: torch.ops.polyop.ms_deform_attn(value, shapes, starts, locations, weights),
                  {"grid_sample": by_grid_sample}, dtype=dtype)  # fmt: skip


def searching() -> Iterator[Contest]:
    boxes, scores = boxes_of(10000), torch.rand(10000, device=DEVICE)
    few, few_scores = boxes[:1000].contiguous(), scores[:1000].contiguous()
    yield Contest("nms", "10000 boxes", boxes.nbytes, lambda: polyop.nms(boxes, scores, iou_threshold=0.5),
                  of_torchvision("nms", lambda rival: rival(boxes, scores, 0.5)))  # fmt: skip
    yield Contest("soft_nms", "1000 boxes", few.nbytes, lambda: polyop.soft_nms(few, few_scores, iou_threshold=0.3))
    points, ends = torch.rand(20000, 3, device=DEVICE), torch.tensor([20000], dtype=torch.int32, device=DEVICE)
    yield Contest("knn_query", "20000 points, 16 nearest", points.nbytes, lambda: polyop.knn_query(16, points, ends),
                  {"torch": lambda: torch.cdist(points, points).topk(16, largest=False)})  # fmt: skip


def contests() -> Iterator[Contest]:
    yield from elementwise()
    yield from sampling()
    for dtype in (torch.float32, torch.float16):
        yield from deformable(dtype)
    yield from searching()


def time_ms(call: Call, rounds: int = 20) -> list[float]:
    for _ in range(5):
        call()
    times = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(5):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 5)
    return times


def product_gflops(dtype: torch.dtype, side: int = 4096) -> float:
    a, b = random(side, side, dtype=dtype), random(side, side, dtype=dtype)
    return 2 * side**3 / min(time_ms(lambda: a @ b)) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="a file for the report")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("bench/gpu.py needs a GPU that torch sees")
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    block = torch.empty(256 << 20, dtype=torch.uint8, device=DEVICE)
    bandwidth = 2 * block.nbytes / min(time_ms(block.clone)) / 1e6  # GB/s
    arithmetic = {dtype: product_gflops(dtype) for dtype in (torch.float32, torch.float16)}
    rows = []
    for contest in track(list(contests()), "measuring"):
        times = time_ms(contest.ours)
        rivals = {who: statistics.median(time_ms(call)) for who, call in contest.rivals.items()}
        minimum = min(times)
        of_bandwidth = contest.moved / minimum / 1e6 / bandwidth
        of_arithmetic = contest.flops / minimum / 1e6 / arithmetic[contest.dtype]
        rows.append(
            Row(contest.name, contest.sizes, minimum, statistics.median(times), of_bandwidth, of_arithmetic, rivals)
        )
    limits = ", ".join(f"{gflops / 1e3:.0f} TFLOP/s in {name_of(d)}" for d, gflops in arithmetic.items())
    title = f"{torch.cuda.get_device_name()}: copies at {bandwidth:.0f} GB/s, products at {limits}"
    table = Table("operator", "sizes", "min", "median", "of copying", "of products", "speed-up", title=title)
    for row in rows:
        speedups = ", ".join(f"{ms / row.median_ms:.2f}x {who}" for who, ms in row.rivals.items())
        products = f"{row.of_arithmetic:.0%}" if row.of_arithmetic > 0 else ""
        times_of_row = (f"{row.min_ms:.3f} ms", f"{row.median_ms:.3f} ms")
        table.add_row(row.name, row.sizes, *times_of_row, f"{row.of_bandwidth:.0%}", products, speedups)
    Console().print(table)
    if arguments.json:
        limits_of = {name_of(d): gflops for d, gflops in arithmetic.items()}
        about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "bandwidth_gb_s": bandwidth}
        report = {**about, "products_gflop_s": limits_of, "rows": [asdict(row) for row in rows]}
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
