# SPDX-License-Identifier: Apache-2.0
"""Times training steps of detectors on the CPU, with random weights: a forward and a backward pass of a batch of two.

python bench/training.py [--only NAME] [--threads 1 2] [--runs 1] [--cpu-time] [--out TABLE.md]

Each model runs twice, in two processes: before, with formulas as the gradients of polyop's operators (or, for models
that run without polyop, with PyTorch alone), and after, with polyop's gradient kernels. The memory is what the step
adds to the weights and inputs at its peak.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from harness import machine
from memory import scratch_of

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from polyop._torch.gradients import without_gradient_kernels  # noqa: E402
from tests.support.clouds import STREET, cloud  # noqa: E402
from tests.support.openmmlab import build, models_of, total  # noqa: E402

SIZE = (128, 160)
POINTS = 10_000
Loss = Callable[[], torch.Tensor]


def images_of_mmdet(configuration: str) -> Loss:
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks
    from mmengine.structures import InstanceData

    model = build(configuration).train()
    known = {"img_shape": SIZE, "ori_shape": SIZE, "pad_shape": SIZE, "batch_input_shape": SIZE}
    samples = []
    for n in range(2):
        low = torch.rand(8, 2) * torch.tensor([SIZE[1] * 0.6, SIZE[0] * 0.6])
        boxes = torch.cat([low, low + 10 + torch.rand(8, 2) * torch.tensor([SIZE[1] * 0.3, SIZE[0] * 0.3])], 1)
        masks = torch.zeros(8, *SIZE, dtype=torch.uint8)
        for mask, (x1, y1, x2, y2) in zip(masks, boxes.int().tolist(), strict=True):
            mask[y1:y2, x1:x2] = 1
        sample = DetDataSample(metainfo={**known, "scale_factor": (1.0, 1.0), "img_id": n})
        sample.gt_instances = InstanceData(
            bboxes=boxes, labels=torch.arange(8), masks=BitmapMasks(masks.numpy(), *SIZE)
        )
        samples.append(sample)
    images = torch.rand(2, 3, *SIZE)
    return lambda: total(model.loss(images, samples))


# A third of KITTI's area in each direction.
AREA = [0.0, -12.8, -3.0, 25.6, 12.8, 1.0]
SMALL_AREA: dict[str, Any] = {
    "model.data_preprocessor.voxel_layer.point_cloud_range": AREA,
    "model.bbox_head.anchor_generator.ranges": [[0.0, -12.8, z, 25.6, 12.8, z] for z in (-0.6, -0.6, -1.78)],
}
CHANGES: dict[str, dict[str, Any]] = {
    "pointpillars": {"model.voxel_encoder.point_cloud_range": AREA, "model.middle_encoder.output_shape": [160, 160]},
    "second": {"model.middle_encoder.sparse_shape": [41, 512, 512]},
}


def clouds_of_mmdet3d(configuration: str) -> Loss:
    from mmdet3d.structures import Det3DDataSample, LiDARInstance3DBoxes
    from mmengine.structures import InstanceData

    changes = {**SMALL_AREA, **CHANGES[configuration.split("/")[0]]}
    model = build(configuration, changes, "mmdet3d").train()
    samples = []
    for _ in range(2):
        sample = Det3DDataSample(metainfo={"box_type_3d": LiDARInstance3DBoxes})
        sample.gt_instances_3d = InstanceData(
            bboxes_3d=LiDARInstance3DBoxes(STREET), labels_3d=torch.tensor([2, 2, 2, 0])
        )
        samples.append(sample)
    points = [cloud(STREET, 25.0, 4, POINTS) for _ in range(2)]

    def loss() -> torch.Tensor:
        batch = model.data_preprocessor({"inputs": {"points": points}, "data_samples": samples}, training=True)
        return total(model.loss(batch["inputs"], batch["data_samples"]))

    return loss


def images_of_transformers(with_polyop: bool) -> Loss:
    import transformers

    from polyop.compat.transformers import use_polyop

    configuration = transformers.DeformableDetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config=transformers.ResNetConfig(out_features=["stage2", "stage3", "stage4"]),
    )
    model = transformers.DeformableDetrModel(configuration).train()
    if with_polyop:
        use_polyop(model)
    images = torch.rand(2, 3, *SIZE)
    return lambda: model(pixel_values=images).last_hidden_state.square().mean()


IMAGES = f"2 x {SIZE[0]} x {SIZE[1]}"


class Model(NamedTuple):
    package: str
    configuration: str
    about: str


MODELS = {
    "Faster R-CNN (mmdet)": Model("mmdet", "faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py", IMAGES),
    "Mask R-CNN (mmdet)": Model("mmdet", "mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py", IMAGES),
    "Deformable DETR (mmdet)": Model("mmdet", "deformable_detr/deformable-detr_r50_16xb2-50e_coco.py", IMAGES),
    "SECOND (mmdet3d)": Model("mmdet3d", "second/second_hv_secfpn_8xb6-80e_kitti-3d-3class.py", "2 x 10,000 points"),
    "PointPillars (mmdet3d)": Model(
        "mmdet3d", "pointpillars/pointpillars_hv_secfpn_8xb6-160e_kitti-3d-3class.py", "2 x 10,000 points"
    ),
    "Deformable DETR (transformers)": Model("transformers", "", IMAGES),
}


@contextmanager
def loss_of(model: Model, after: bool) -> Iterator[Loss]:
    with ExitStack() as stack:
        if not after:
            stack.enter_context(without_gradient_kernels())
        torch.manual_seed(0)
        if model.package == "transformers":
            yield images_of_transformers(after)
            return
        stack.enter_context(models_of(model.package))
        yield (images_of_mmdet if model.package == "mmdet" else clouds_of_mmdet3d)(model.configuration)


def measured_here(name: str, after: bool, threads: int, runs: int, clock: Callable[[], float]) -> dict[str, float]:
    """Returns the minimum times of the passes in seconds, and the memory in MB. The first step is the warm-up."""
    torch.set_num_threads(threads)
    forward, backward = [], []
    with loss_of(MODELS[name], after) as loss:

        def step() -> list[Any]:
            torch.manual_seed(1)  # the same samples of boxes
            start = clock()
            value = loss()
            middle = clock()
            value.backward()
            forward.append(middle - start)
            backward.append(clock() - middle)
            return []

        megabytes = scratch_of(step)[1]
        for _ in range(runs):
            step()
    return {"forward": min(forward[1:]), "backward": min(backward[1:]), "memory": megabytes}


def measured(name: str, after: bool, threads: int, options: argparse.Namespace) -> dict[str, float]:
    arguments = ["--child", name, "--threads", str(threads), "--runs", str(options.runs)]
    arguments += (["--after"] if after else []) + (["--cpu-time"] if options.cpu_time else [])
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


HEAD = (
    "model | input | threads | forward, s | backward before, s | after, s | step before, s | after, s | memory before, "
    "MB | after, MB"
)


def row(name: str, threads: int, options: argparse.Namespace) -> str:
    before, after = (measured(name, kind, threads, options) for kind in (False, True))
    cells = [name, MODELS[name].about, str(threads), f"{after['forward']:.2f}"]
    cells += [f"{before['backward']:.2f}", f"{after['backward']:.2f}"]
    steps = [result["forward"] + result["backward"] for result in (before, after)]
    cells += [f"{steps[0]:.2f}", f"{steps[1]:.2f} ({steps[0] / steps[1]:.1f}x)"]
    return " | ".join([*cells, f"{before['memory']:.0f}", f"{after['memory']:.0f}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=MODELS, help="a model's name")
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--runs", type=int, default=1, help="steps after the first")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="the CPU time of all threads instead of the elapsed time: on a busy machine",
    )
    parser.add_argument("--out", type=Path, help="a file to which the table is also written")
    parser.add_argument("--child", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--after", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        warnings.simplefilter("ignore")
        clock = time.process_time if options.cpu_time else time.perf_counter
        print(json.dumps(measured_here(options.child, options.after, options.threads[0], options.runs, clock)))
        return
    about = ", ".join(f"{key} {value}" for key, value in machine().items())
    kind = "CPU time" if options.cpu_time else "time"
    lines = [f"The {kind} of a step, the minimum of {options.runs} after the first. {about}.", ""]
    lines += [f"| {HEAD} |", f"| {' | '.join('---' for _ in HEAD.split('|'))} |"]
    print("\n".join(lines), flush=True)
    failed: list[str] = []
    for name in options.only or MODELS:
        for threads in options.threads:
            try:
                lines.append(f"| {row(name, threads, options)} |")
            except RuntimeError as error:  # the other models still run
                print(error, file=sys.stderr, flush=True)
                failed.append(name)
                continue
            print(lines[-1], flush=True)
            if options.out:
                options.out.write_text("# Training steps\n\n" + "\n".join(lines) + "\n")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
