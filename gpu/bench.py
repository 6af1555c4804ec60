"""Every operator that has a rival on the GPU, at the sizes of bench/cases.py, beside torch's and torchvision's kernels.

Times are CUDA events around many calls, the rivals in turns, least and median; limits are this GPU's own copy bandwidth.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

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
class Row:
    name: str
    sizes: str
    least_ms: float
    median_ms: float
    megabytes: float
    of_bandwidth: float
    rivals: dict[str, float] = field(default_factory=dict)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, device=DEVICE)


def boxes_of(count: int, scale: float = 1.0) -> torch.Tensor:
    corner, size = torch.rand(count, 2, device=DEVICE) * 800, 16 + torch.rand(count, 2, device=DEVICE) * 300
    return torch.cat([corner, corner + size], 1) * scale


def contests() -> list[tuple[str, str, float, dict[str, Call]]]:
    """Name, sizes, bytes that must move, and the calls; polyop's is first."""
    ops = torch.ops.polyop
    x, boxes = random(1, 256, 200, 304), boxes_of(1000)
    rois = torch.cat([torch.zeros(1000, 1, device=DEVICE), boxes], 1)
    grid = torch.rand(1, 512, 512, 2, device=DEVICE) * 2 - 1
    picture = random(1, 64, 512, 512)
    many, scores = boxes_of(10000), torch.rand(10000, device=DEVICE)
    features, weight = random(1, 256, 64, 64), random(256, 256, 3, 3) * 0.02
    offset, mask = random(1, 18, 64, 64), torch.rand(1, 9, 64, 64, device=DEVICE)
    line = random(64, 100000)
    small = random(8, 64, 128, 128)
    points = torch.rand(20000, 3, device=DEVICE)
    ends = torch.tensor([20000], dtype=torch.int32, device=DEVICE)
    q = random(8, 900, 64)
    with_torchvision = torchvision is not None
    result: list[tuple[str, str, float, dict[str, Call]]] = []

    def add(name: str, sizes: str, moved: float, ours: Call, **rivals: Call | None) -> None:
        result.append((name, sizes, moved, {"polyop": ours, **{k: v for k, v in rivals.items() if v is not None}}))

    add(
        "my_add",
        "64 x 100000",
        3 * line.nbytes,
        lambda: ops.my_add(line, line),
        torch=lambda: torch.add(line, line, alpha=2),
    )
    add(
        "roi_align", "256x200x304, 1000 rois, 7x7", x.nbytes + 1000 * 256 * 49 * 4,
        lambda: polyop.roi_align(x, rois, 7, spatial_scale=0.25, sampling_ratio=2, aligned=True),
        torchvision=(lambda: torchvision.ops.roi_align(x, rois, 7, 0.25, 2, True)) if with_torchvision else None,
    )  # fmt: skip
    add(
        "nms", "10000 boxes", many.nbytes, lambda: polyop.nms(many, scores, iou_threshold=0.5),
        torchvision=(lambda: torchvision.ops.nms(many, scores, 0.5)) if with_torchvision else None,
    )  # fmt: skip
    for mode in ("bilinear", "nearest", "bicubic"):
        add(
            f"grid_sample {mode}", "64x512x512", 2 * picture.nbytes + grid.nbytes,
            lambda mode=mode: polyop.grid_sample(picture, grid, mode=mode, align_corners=False),
            torch=lambda mode=mode: F.grid_sample(picture, grid, mode=mode, align_corners=False),
        )  # fmt: skip
    add(
        "modulated_deform_conv2d", "256x64x64, 3x3", 2 * features.nbytes + weight.nbytes,
        lambda: polyop.modulated_deform_conv2d(features, offset, mask, weight, padding=1),
        torchvision=(lambda: torchvision.ops.deform_conv2d(features, offset, weight, padding=1, mask=mask))
        if with_torchvision else None,
    )  # fmt: skip
    add("cummax", "64 x 100000", 4 * line.nbytes, lambda: ops.cummax(line, dim=1), torch=lambda: torch.cummax(line, 1))
    add(
        "instance_norm", "8x64x128x128", 2 * small.nbytes, lambda: ops.instance_norm(small, small[0, :, 0, 0], small[0, :, 0, 0]),
        torch=lambda: F.instance_norm(small, weight=small[0, :, 0, 0], bias=small[0, :, 0, 0]),
    )  # fmt: skip
    add(
        "scaled_dot_product_attention", "8x900x64", 4 * q.nbytes + 8 * 900 * 900 * 4,
        lambda: ops.scaled_dot_product_attention(q, q, q, None),
        torch=lambda: torch.softmax(q @ q.mT / 8, -1) @ q,
    )  # fmt: skip
    add("soft_nms", "1000 boxes", boxes.nbytes, lambda: polyop.soft_nms(boxes, scores[:1000], iou_threshold=0.3))
    add(
        "knn_query", "20000 points, 16 nearest", points.nbytes, lambda: polyop.knn_query(16, points, ends),
        torch=lambda: torch.cdist(points, points).topk(16, largest=False),
    )  # fmt: skip
    return result


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where the report goes")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("bench.py needs a GPU that torch sees")
    torch.manual_seed(0)
    block = torch.empty(256 << 20, dtype=torch.uint8, device=DEVICE)
    bandwidth = 2 * block.nbytes / min(time_ms(block.clone)) / 1e6  # GB/s
    rows = []
    for name, sizes, moved, calls in track(contests(), "measuring"):
        times = {who: time_ms(call) for who, call in calls.items()}
        least = min(times["polyop"])
        rivals = {who: statistics.median(t) for who, t in times.items() if who != "polyop"}
        rows.append(
            Row(
                name,
                sizes,
                least,
                statistics.median(times["polyop"]),
                moved / 1e6,
                moved / least / 1e6 / bandwidth,
                rivals,
            )
        )
    table = Table(
        "operator",
        "sizes",
        "least",
        "median",
        "of copying",
        "beside",
        title=f"{torch.cuda.get_device_name()}, copies at {bandwidth:.0f} GB/s",
    )
    for row in rows:
        beside = ", ".join(f"{ms / row.median_ms:.2f}x {who}" for who, ms in row.rivals.items())
        table.add_row(
            row.name, row.sizes, f"{row.least_ms:.3f} ms", f"{row.median_ms:.3f} ms", f"{row.of_bandwidth:.0%}", beside
        )
    Console().print(table)
    if arguments.json:
        about = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "bandwidth_gb_s": bandwidth}
        arguments.json.write_text(json.dumps({**about, "rows": [asdict(row) for row in rows]}, indent=2) + "\n")


if __name__ == "__main__":
    main()
