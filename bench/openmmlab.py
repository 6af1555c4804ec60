# SPDX-License-Identifier: Apache-2.0
"""Times whole models of mmdet and mmdet3d on the CPU, with polyop instead of MMCV's compiled module, with random
weights.

python bench/openmmlab.py [--only NAME] [--threads 1 2] [--runs 5] [--out TABLE.md]

Of MMCV's operators in these models, only deformable attention runs without the compiled module: that model is also
timed with MMCV's plain torch, interleaved. RoIAlign, nms, voxelization and sparse convolutions have no such fallback:
for those models the table has the time, and polyop's share of it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from harness import machine
from timing import interleaved

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.clouds import STREET, cloud  # noqa: E402
from tests.support.openmmlab import build, models_of  # noqa: E402

SIZE = (480, 640)


class Model(NamedTuple):
    package: str
    configuration: str
    about: str


MODELS = {
    "Mask R-CNN": Model("mmdet", "mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py", "480 x 640"),
    "Deformable DETR": Model("mmdet", "deformable_detr/deformable-detr_r50_16xb2-50e_coco.py", "480 x 640"),
    "PointPillars": Model(
        "mmdet3d", "pointpillars/pointpillars_hv_secfpn_8xb6-160e_kitti-3d-3class.py", "20,000 points"
    ),
    "SECOND": Model("mmdet3d", "second/second_hv_secfpn_8xb6-80e_kitti-3d-3class.py", "20,000 points"),
}


def prepared(model: Model) -> Callable[[], Any]:
    """Returns a call from a normalised image, or a point cloud, to boxes."""
    network = build(model.configuration, None, model.package).eval()
    torch.manual_seed(0)
    if model.package == "mmdet":
        from mmdet.structures import DetDataSample

        known = {"img_shape": SIZE, "ori_shape": SIZE, "pad_shape": SIZE, "batch_input_shape": SIZE}
        sample = DetDataSample(metainfo={**known, "scale_factor": (1.0, 1.0), "img_id": 0})
        image = torch.rand(1, 3, *SIZE)
        return lambda: network.predict(image, [sample])
    from mmdet3d.structures import Det3DDataSample, LiDARInstance3DBoxes

    sample = Det3DDataSample(metainfo={"box_type_3d": LiDARInstance3DBoxes})
    points = cloud(STREET, 60.0, 4, 20000)
    return lambda: network.test_step({"inputs": {"points": [points]}, "data_samples": [sample]})


@contextmanager
def plain_attention() -> Iterator[None]:
    """Replaces deformable attention by MMCV's own in plain torch."""
    import mmcv.ops.multi_scale_deform_attn as module

    ours = module.multi_scale_deformable_attn_pytorch
    module.multi_scale_deformable_attn_pytorch = ours.__wrapped__
    yield
    module.multi_scale_deformable_attn_pytorch = ours


def share(call: Callable[[], Any]) -> float:
    """Returns the share of the time that polyop's operators take."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    events = profile.key_averages()
    ours = sum(e.self_cpu_time_total for e in events if e.key.startswith("polyop::"))
    return ours / sum(e.self_cpu_time_total for e in events)


@torch.no_grad()
def measured(name: str, threads: int, runs: int) -> str:
    torch.set_num_threads(threads)
    call = prepared(MODELS[name])
    contexts = {"polyop": nullcontext} | ({"plain": plain_attention} if name == "Deformable DETR" else {})
    samples = interleaved(dict.fromkeys(contexts, call), 0, runs, runs, around=lambda name: contexts[name]())
    ours, *theirs = (statistics.median(times) for times in samples.values())
    cells = [name, MODELS[name].about, str(threads), f"{ours:.0f}", f"{share(call):.0%}"]
    cells += [f"{theirs[0]:.0f}", f"{theirs[0] / ours:.2f}x"] if theirs else ["has none", "-"]
    return " | ".join(cells)


HEAD = "model | input | threads | with polyop, ms | of it polyop's operators | MMCV's plain torch, ms | gain"


def table(rows: list[str], runs: int) -> str:
    about = ", ".join(f"{key} {value}" for key, value in machine().items())
    lines = [HEAD, " | ".join("---" for _ in HEAD.split("|")), *rows]
    return f"Medians of {runs} runs, the two ways interleaved. {about}.\n\n" + "".join(
        f"| {line} |\n" for line in lines
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=MODELS, help="a model's name")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path, help="a file to which the table is also written")
    options = parser.parse_args()
    rows = []
    with models_of("mmdet", "mmdet3d"):
        for name in options.only or MODELS:
            for threads in options.threads:
                rows.append(measured(name, threads, options.runs))
                print(rows[-1], flush=True)
    print(text := table(rows, options.runs))
    if options.out:
        options.out.write_text("# Models of OpenMMLab\n\n" + text)


if __name__ == "__main__":
    main()
