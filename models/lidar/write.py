# SPDX-License-Identifier: Apache-2.0
"""Writes detectors of LiDAR sweeps as ONNX, with random weights.

pointpillars.onnx           points f32[n, 4] -> detections f32[k, 9]; polyop's nodes
pointpillars_plugins.onnx   the same with points f32[1, n, 4], num_points i32[1]; VoxelGeneratorPlugin and
                            PillarScatterPlugin
second.onnx                 points f32[n, 4] -> detections; sparse convolutions as autoware's nodes

python models/lidar/write.py FOLDER [--small]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import onnx
import pointpillars
import second
import torch
from head import settle

import polyop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scenes"))

import scenes

OUTPUTS = ["detections"]
PLUGINS = {"VoxelGeneratorPlugin": "VoxelGeneratorPlugin", "PillarScatter": "PillarScatterPlugin"}


def name_plugins(path: Path) -> None:
    """Removes the domains, as other exporters do for TensorRT's plugins."""
    model = onnx.load(path)
    for node in model.graph.node:
        if node.op_type in PLUGINS:
            node.domain, node.op_type = "", PLUGINS[node.op_type]
    onnx.save(model, path)


def make_pointpillars(config: pointpillars.Config) -> tuple[pointpillars.PointPillars, pointpillars.PluginPointPillars]:
    """Returns both forms with the same weights."""
    network, plugins = pointpillars.PointPillars(config), pointpillars.PluginPointPillars(config)
    settle(network, torch.from_numpy(scenes.street(seed=1, steps=500).points))
    plugins.load_state_dict(network.state_dict())
    return network, plugins


def make_second(config: second.Config) -> second.Second:
    network = second.Second(config)
    settle(network, torch.from_numpy(scenes.street(seed=1, steps=500).points))
    return network


def example(config: pointpillars.Config | second.Config, count: int = 500) -> torch.Tensor:
    """Returns points within the range."""
    low, high = torch.tensor(config.range).view(2, 3)
    positions = low + (high - low) * torch.rand(count, 3, generator=torch.Generator().manual_seed(0))
    return torch.cat([positions, torch.full((count, 1), 0.5)], 1)


def write_pointpillars(folder: Path, config: pointpillars.Config) -> tuple[Path, Path]:
    """Writes both forms."""
    first, second_form = folder / "pointpillars.onnx", folder / "pointpillars_plugins.onnx"
    network, plugins = make_pointpillars(config)
    points = example(config)
    polyop.export(
        network,
        (points,),
        first,
        input_names=["points"],
        output_names=OUTPUTS,
        dynamic={"points": {0: "n"}},
    )
    polyop.export(
        plugins,
        (points[None], torch.tensor([len(points)], dtype=torch.int32)),
        second_form,
        input_names=["points", "num_points"],
        output_names=OUTPUTS,
        dynamic={"points": {1: "n"}},
    )
    name_plugins(second_form)
    return first, second_form


def write_second(folder: Path, config: second.Config) -> Path:
    path = folder / "second.onnx"
    polyop.export(
        make_second(config),
        (example(config),),
        path,
        input_names=["points"],
        output_names=OUTPUTS,
        dynamic={"points": {0: "n"}},
    )
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes detectors of LiDAR sweeps as ONNX.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true", help="a small range and thin networks")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    one, other = pointpillars.Config(), second.Config()
    if options.small:
        one, other = one.small(), other.small()
    for path in (*write_pointpillars(options.folder, one), write_second(options.folder, other)):
        print(path)


if __name__ == "__main__":
    main()
