# SPDX-License-Identifier: Apache-2.0
"""Exports whole models of Hugging Face's transformers and of timm by polyop.export, and writes a row for each.

    python -m tests.support.whole_models --out rows.jsonl [--names REGEX] [--limit SECONDS]
    python -m tests.support.whole_models --table rows.jsonl …

A model has the configuration that its package gives without a download, with few layers and queries where the package
allows it, and random weights, which are scaled so that each layer's results have a standard deviation of 1. Without
that, deep networks compute the same for all pixels up to rounding errors, and detectors choose among equal scores.
Rows that the file has are not computed again. A child process exports each model, within a limit of processor time, so
that other programs of a busy machine do not count.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import json
import math
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

TABLE = Path(__file__).parents[1] / "data" / "whole_models.json"
"""The status and the reason of each model, as last measured."""
MAPPINGS = (
    "IMAGE_CLASSIFICATION", "OBJECT_DETECTION", "SEMANTIC_SEGMENTATION", "INSTANCE_SEGMENTATION",
    "UNIVERSAL_SEGMENTATION", "DEPTH_ESTIMATION", "KEYPOINT_DETECTION", "KEYPOINT_MATCHING", "POSE_ESTIMATION",
    "IMAGE_TO_IMAGE", "IMAGE_MATTING", "VIDEO_CLASSIFICATION", "TABLE_RECOGNITION", "TEXT_RECOGNITION", "BACKBONE",
)  # fmt: skip
_DEPTHS = ("num_hidden_layers", "encoder_layers", "decoder_layers", "num_layers", "num_encoder_layers",
           "num_decoder_layers", "decoder_num_layers", "num_attention_layers", "layers")  # fmt: skip
_QUERIES = ("num_queries", "two_stage_num_proposals")
_IMAGE_SIZES = {"depth_pro": (448, 448), "rf_detr": (504, 504), "pp_ocrv5_mobile_rec": (96, 320)}
"""What these models can divide into parts."""
_DEPS = Path(__file__).parents[2] / ".deps"
_SMALL = re.compile(r"test|atto|femto|pico|nano|tiny|xxs|xs|small|_s\b|b0|18|_0")


def names() -> list[str]:
    """Returns the names of all models: package/task/architecture. Those of timm only if it is there."""
    use_folders()
    from transformers.models.auto import modeling_auto

    found = [
        f"transformers/{task.lower()}/{kind}"
        for task in MAPPINGS
        for kind in getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES")
    ]
    with contextlib.suppress(ImportError):
        import timm

        found += [f"timm/family/{module}" for module in timm.list_modules() if timm.list_models(module=module)]
    return found


def use_folders() -> None:
    """Makes timm and torchvision importable from .deps/ if they are not installed. polyop has torchvision's kernels."""
    for package in ("timm", "torchvision"):
        if importlib.util.find_spec(package) is None and (_DEPS / package / package).is_dir():
            sys.path.append(str(_DEPS / package))
    import polyop.compat

    with contextlib.suppress(RuntimeError):  # torchvision has its own kernels
        polyop.compat.install("torchvision._C")


def _configurations(config: Any) -> Iterator[Any]:
    """Yields a configuration, and those that it has."""
    yield config
    for value in vars(config).values():
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            yield from _configurations(value)


def _shrink(config: Any) -> None:
    """Reduces the number of layers and of queries."""
    for part in _configurations(config):
        for key, value in list(vars(part).items()):
            if key in _DEPTHS and isinstance(value, int):
                setattr(part, key, min(value, 2))
            elif key in _QUERIES and isinstance(value, int):
                setattr(part, key, min(value, 20))
            elif key == "depths" and isinstance(value, (list, tuple)):
                part.depths = type(value)(min(depth, 2) for depth in value)
        if len(getattr(part, "stage_names", None) or ()) > getattr(part, "num_hidden_layers", 1000) + 1:
            _set_stages(part, part.num_hidden_layers)


def _set_stages(backbone: Any, number: int) -> None:
    """Gives the names of a backbone's stages that it has after its layers are fewer. It returns as many as before, the
    last ones.
    """
    returned = min(len(backbone.out_indices), number + 1)
    backbone.stage_names = ["stem"] + [f"stage{n}" for n in range(1, number + 1)]
    backbone.set_output_features_output_indices(backbone.stage_names[-returned:], None)


def _complete(config: Any, task: str) -> None:
    """Sets what a configuration's default values leave to the files of its models."""
    for part in _configurations(config):
        for key, value in list(vars(part).items()):
            if key.endswith("hidden_sizes") and isinstance(value, tuple):
                setattr(part, key, list(value))
    if "intraclass_block_config" in vars(config):
        config.intraclass_block_config = _intraclass_blocks()
        config.kernel_list, config.scale_factor_list = [3, 2, 2], [1, 2, 4, 8]
    match config.model_type:
        case "beit" if task == "semantic_segmentation":
            config.out_indices = [3, 5, 7, 11]
        case "depth_pro":
            config.patch_size = 112
            config.intermediate_hook_ids = (1, 0)
            for part in (config.image_model_config, config.patch_model_config, config.fov_model_config):
                part.image_size = config.patch_size
        case "lightglue":  # it would stop early, depending on values
            config.depth_confidence = config.width_confidence = -1.0
        case "lw_detr":
            config.projector_scale_factors = [2.0, 0.5]
            config.projector_in_channels = [config.d_model] * 2
            config.num_feature_levels = 2
        case "pp_doclayout_v2":
            config.class_thresholds = [0.5] * config.num_labels
            config.class_order = list(range(config.num_labels))
        case "pp_ocrv6_small_det" | "pp_ocrv6_medium_det":
            backbone = config.backbone_config
            for blocks in backbone.block_configs[1:]:
                blocks[0][3] = 2  # its stride; the default values are those of recognizers
            backbone.set_output_features_output_indices(backbone.stage_names[1:], None)
            config.layer_list_out_channels = backbone.stage_out_channels
        case "sapiens2":
            from transformers.models.sapiens2.configuration_sapiens2 import Sapiens2HeadConfig

            channels: Any = {f"{part}_out_channels": [32, 32] for part in ("upsample", "conv", "scale_conv")}
            config.image_size = (256, 192)
            config.head_config = Sapiens2HeadConfig(**channels)
            config.head_config._init_scale_final_input_size(image_size=config.image_size, patch_size=config.patch_size)
        case "timm_backbone":
            config.backbone = "resnet18"
        case "eomt_dinov3" | "videomt":
            config.image_size = 160
        case "vitmatte":
            config.hidden_size = config.backbone_config.hidden_size


def _intraclass_blocks() -> dict[str, list[Any]]:
    """Returns the kernel, stride and padding of each convolution in a block of PP-OCR's server detectors."""
    blocks: dict[str, list[Any]] = {"reduce_channel": [1, 1, 0], "return_channel": [1, 1, 0]}
    for ratio, size in {"longratio": 7, "midratio": 5, "shortratio": 3}.items():
        blocks[f"vertical_long_to_small_conv_{ratio}"] = [(size, 1), 1, (size // 2, 0)]
        blocks[f"horizontal_small_to_long_conv_{ratio}"] = [(1, size), 1, (0, size // 2)]
        blocks[f"symmetric_conv_long_{ratio}"] = [size, 1, size // 2]
    return blocks


def _further_inputs(config: Any) -> dict[str, torch.Tensor]:
    """Returns the further inputs that a model requires."""
    match config.model_type:
        case "oneformer":
            return {"task_inputs": torch.randint(0, config.text_encoder_vocab_size, (1, config.task_seq_len))}
        case "siglip2":
            side = 8
            return {
                "pixel_attention_mask": torch.ones(1, side * side, dtype=torch.int64),
                "spatial_shapes": torch.tensor([[side, side]]),
            }
    return {}


def _image(config: Any, task: str) -> torch.Tensor:
    """Returns a model's main input: an image, a video, a pair of images, or what the model takes for it."""
    if config.model_type == "imagegpt":
        return torch.randint(0, config.vocab_size - 1, (1, 64))
    if config.model_type == "siglip2":
        return torch.rand(1, 64, config.vision_config.num_channels * config.vision_config.patch_size**2)
    line = (48, 320) if task == "text_recognition" else None
    size = _IMAGE_SIZES.get(config.model_type) or line or _image_size(config)
    channels = getattr(config, "num_channels", 3)
    shape = [1, channels if isinstance(channels, int) else 3, *size]
    if task == "video_classification" or config.model_type == "videomt":
        shape.insert(1, getattr(config, "num_frames", 8))
    if task == "keypoint_matching":
        shape.insert(1, 2)
    return torch.rand(shape)


def _image_size(config: Any) -> tuple[int, int]:
    for holder in (config, getattr(config, "vision_config", None), getattr(config, "backbone_config", None)):
        size = getattr(holder, "image_size", None)
        if isinstance(size, int):
            return size, size
        if isinstance(size, (list, tuple)) and len(size) == 2:
            return tuple(size)
    return 224, 224


def _scale_weights(model: torch.nn.Module, pixels: torch.Tensor) -> None:
    """Scales the weights of each layer so that its results, without the bias, have a standard deviation of 1."""
    kinds = (torch.nn.Linear, torch.nn.modules.conv._ConvNd)

    def scale(module: Any, inputs: Any, result: torch.Tensor) -> Any:
        bias: Any = 0 if module.bias is None else module.bias
        if isinstance(bias, torch.Tensor) and not isinstance(module, torch.nn.Linear):
            bias = bias.reshape(-1, *[1] * (result.dim() - 2))
        products = result - bias
        deviation = float(products.std()) if products.numel() > 1 else 0.0
        if not 1e-30 < deviation < 1e30:
            return result
        module.weight.data /= deviation
        return products / deviation + bias

    hooks = [m.register_forward_hook(scale) for m in model.modules() if isinstance(m, kinds)]
    try:
        with torch.no_grad():
            model(pixels)
    finally:
        for hook in hooks:
            hook.remove()


class _Tensors(torch.nn.Module):
    """Returns the tensors that are anywhere in a model's result. Inputs other than the image are constants."""

    def __init__(self, model: torch.nn.Module, constants: dict[str, torch.Tensor] | None = None) -> None:
        super().__init__()
        self.model = model
        self.names = list(constants or {})
        for name in self.names:
            self.register_buffer(name, (constants or {})[name])

    def forward(self, pixels: torch.Tensor) -> Any:
        result = self.model(pixels, **{name: getattr(self, name) for name in self.names})
        result = result.to_tuple() if hasattr(result, "to_tuple") else result
        return tuple(leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor))


def build(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """Returns a model that returns a tuple of tensors, and its input."""
    use_folders()
    package, task, kind = name.split("/")
    first: Exception | None = None
    for small in (True, False):
        torch.manual_seed(0)
        try:
            model, pixels = _timm_model(kind) if package == "timm" else _transformers_model(task, kind, small)
            _scale_weights(model, pixels)
            return model, pixels
        except Exception as error:  # fewer layers than others of the configuration's values expect
            first = first or error
    assert first is not None
    raise first


def _timm_model(kind: str) -> tuple[torch.nn.Module, torch.Tensor]:
    import timm

    found = timm.list_models(module=kind)
    chosen = next((model for model in found if _SMALL.search(model)), found[0])
    model = timm.create_model(chosen, pretrained=False)
    return _Tensors(model).eval(), torch.rand(1, *model.default_cfg.get("input_size", (3, 224, 224)))


def _transformers_model(task: str, kind: str, small: bool) -> tuple[torch.nn.Module, torch.Tensor]:
    import transformers
    from transformers.models.auto import modeling_auto

    architecture = getattr(modeling_auto, f"MODEL_FOR_{task.upper()}_MAPPING_NAMES")[kind]
    chosen = getattr(transformers, architecture if isinstance(architecture, str) else architecture[0])
    config = chosen.config_class()
    if small:
        _shrink(config)
    for holder in _configurations(config):  # weights are not downloaded
        for key in ("use_pretrained_backbone", "pretrained"):
            if getattr(holder, key, False):
                setattr(holder, key, False)
    _complete(config, task)
    return _Tensors(chosen(config), _further_inputs(config)).eval(), _image(config, task)


def _differs_by_rounding(model: torch.nn.Module, pixels: torch.Tensor, path: Path) -> bool:
    """Returns whether each output of the exported model differs from PyTorch's by at most twice the difference that
    the rounding errors of float32 make in PyTorch. Makes the model one of float64.
    """
    import polyop

    report = polyop.export(model, pixels, path, exporter="dynamo", verbose=False, atol=math.inf)
    with torch.no_grad():
        narrow = model(pixels)
        wide = model.double()(pixels.double() if pixels.is_floating_point() else pixels)
    if len(report.outputs) != len(narrow) or any(a.shape != b.shape for a, b in zip(narrow, wide, strict=True)):
        return False
    errors = [float((a.double() - b.double()).abs().max()) for a, b in zip(narrow, wide, strict=True)]
    tolerance = [2 * error + 1e-4 for error in errors]
    return all(output.largest_difference <= most for output, most in zip(report.outputs, tolerance, strict=True))


def outcome(name: str) -> tuple[str, str]:
    """Exports a model. Returns the status and the reason."""
    import polyop

    try:
        model, pixels = build(name)
        with torch.no_grad():
            if not model(pixels):
                return "not built", "returns no tensors"
    except Exception as error:  # some need packages, further inputs or weights
        return "not built", f"{type(error).__name__}: {str(error).strip()}".splitlines()[0][:200]
    with tempfile.TemporaryDirectory() as folder:
        try:
            report = polyop.export(model, pixels, Path(folder, "model.onnx"), exporter="dynamo", verbose=False)
        except polyop.ExportError as error:
            text = str(error)
            status = "wrong" if "differ" in text else "refused" if "cannot run" in text else "not exported"
            if status == "wrong" and _differs_by_rounding(model, pixels, Path(folder, "model.onnx")):
                return "rounding", "float32 and float64 differ as much in PyTorch"
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            advice = [
                line.strip() for line in text.splitlines() if re.search("has no ONNX form|depends on values", line)
            ]
            reason = advice[0] if advice else f"{type(cause).__name__}: {cause}".splitlines()[0]
            return status, re.sub(r"/[^ ]*/(?=[^ /]+\.py)", "", reason)[:200]
    return "right", ", ".join(f"{target} x{count}" for target, count in sorted(report.translated.items()))


def _child(name: str, answers: Connection, limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    # By default, the order of equal elements depends on the instruction set in PyTorch; in ONNX it is that of indices.
    torch.argsort = functools.partial(torch.argsort, stable=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the exporter prints
    os.dup2(1, 2)
    start = time.monotonic()
    status, reason = outcome(name)
    answers.send({"name": name, "status": status, "reason": reason, "seconds": round(time.monotonic() - start, 1)})


def _row(name: str, limit: int) -> dict[str, Any]:
    """Exports a model in a child process, which has the parent's modules: importing them takes as long as an export."""
    processes = multiprocessing.get_context("fork")
    answers, theirs = processes.Pipe(duplex=False)
    child = processes.Process(target=_child, args=(name, theirs, limit), daemon=True)
    start = time.monotonic()
    child.start()
    theirs.close()
    try:
        if answers.poll(10 * limit):
            return answers.recv()
        reason = f"no result after {10 * limit} s"
    except EOFError:
        child.join()
        late = child.exitcode == -signal.SIGXCPU
        reason = f"longer than {limit} s" if late else f"exit status {child.exitcode}"
    finally:
        child.kill()
    return {"name": name, "status": "not exported", "reason": reason, "seconds": round(time.monotonic() - start, 1)}


def _import_all() -> None:
    """Imports what exports need, and builds the exporter's registry."""
    use_folders()  # before transformers, which looks for timm once
    import transformers  # noqa: F401
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    import polyop  # noqa: F401
    from tests.support.faster_export import keep_registries

    keep_registries()
    ONNXRegistry.from_torchlib()


def _read(files: list[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        if file.exists():
            yield from (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the file of rows")
    parser.add_argument("--names", default="", help="a regular expression that selects names")
    parser.add_argument("--limit", type=int, default=300, help="the limit of a model's processor time in seconds")
    parser.add_argument("--table", type=Path, nargs="+", help="writes the table of these files of rows, and ends")
    options = parser.parse_args()
    if options.table:
        found = {row["name"]: [row["status"], row["reason"]] for row in _read(options.table)}
        lines = (f"  {json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
        TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return 0
    done = {row["name"] for row in _read([options.out])}
    _import_all()
    with options.out.open("a", encoding="utf-8") as file:
        for name in names():
            if re.search(options.names, name) and name not in done:
                file.write(json.dumps(_row(name, options.limit)) + "\n")
                file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
