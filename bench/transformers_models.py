# SPDX-License-Identifier: Apache-2.0
"""Third-party models of Hugging Face transformers with random weights, as ONNX files.

`full` selects the usual size; otherwise a model is small enough for a test.
"""

from __future__ import annotations

import argparse
import logging
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import torch
import transformers
from onnxscript import opset18 as op
from torch import Tensor, nn


@dataclass
class Example:
    """A model, its inputs, and the names of its outputs."""

    module: nn.Module
    inputs: dict[str, Tensor]
    opset: int = 18
    outputs: list[str] = field(default_factory=lambda: ["y"])


class Wrapped(nn.Module):
    """Tensors in, a flat tuple of the named results out."""

    def __init__(self, model: nn.Module, inputs: list[str], outputs: list[str]) -> None:
        super().__init__()
        self.model, self.names, self.results = model, inputs, outputs

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        result = self.model(**dict(zip(self.names, tensors, strict=True)))
        return tuple(getattr(result, name) for name in self.results)


def _resnet(full: bool, kind: type = transformers.ResNetConfig) -> transformers.PretrainedConfig:
    depths, widths = ([3, 4, 6, 3], [256, 512, 1024, 2048]) if full else ([1, 1, 1, 1], [8, 8, 16, 16])
    return kind(
        depths=depths,
        hidden_sizes=widths,
        layer_type="bottleneck" if full else "basic",
        embedding_size=64 if full else 8,
        out_features=["stage2", "stage3", "stage4"],
    )


def _swin(full: bool) -> transformers.PretrainedConfig:
    sizes = {} if full else {"embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2]}
    return transformers.SwinConfig(out_features=["stage1", "stage2", "stage3", "stage4"], **sizes)


def _image(full: bool, small: int, large: int = 640) -> dict[str, Tensor]:
    size = large if full else small
    return {"pixel_values": torch.rand(1, 3, size, size)}


def _detector(model: nn.Module, inputs: dict[str, Tensor]) -> Example:
    outputs = ["logits", "pred_boxes"]
    return Example(Wrapped(model, list(inputs), outputs), inputs, outputs=outputs)


def deformable_detr(full: bool) -> Example:
    sizes = {} if full else {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
        "num_queries": 20, "encoder_attention_heads": 4, "decoder_attention_heads": 4
    }  # fmt: skip
    config = transformers.DeformableDetrConfig(
        backbone_config=_resnet(full), use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, **sizes
    )
    return _detector(transformers.DeformableDetrForObjectDetection(config), _image(full, 96))


def rf_detr(full: bool) -> Example:
    """The attention of its decoder is deformable, with one level of features."""
    sizes = {} if full else {
        "backbone_config": transformers.RfDetrDinov2Config(
            hidden_size=16, num_hidden_layers=4, num_attention_heads=2, image_size=64, patch_size=8, num_windows=2,
            out_indices=[2, 4],
        ),
        "d_model": 32, "decoder_layers": 2, "decoder_ffn_dim": 32, "decoder_self_attention_heads": 4,
        "decoder_cross_attention_heads": 4, "decoder_n_points": 2, "num_queries": 20, "group_detr": 1,
    }  # fmt: skip
    return _detector(transformers.RfDetrForObjectDetection(transformers.RfDetrConfig(**sizes)), _image(full, 64, 512))


def _rt_detr(full: bool, family: str, **more: object) -> Example:
    widths = _resnet(full).hidden_sizes[1:]
    sizes = {} if full else {
        "d_model": 32, "decoder_in_channels": [32, 32, 32], "encoder_hidden_dim": 32, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "num_queries": 20,
        "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    }  # fmt: skip
    config = getattr(transformers, family + "Config")(
        backbone_config=_resnet(full, transformers.RTDetrResNetConfig),
        encoder_in_channels=widths,
        use_pretrained_backbone=False,
        backbone=None,
        **sizes,
        **more,
    )
    model = getattr(transformers, family + "ForObjectDetection")(config)
    return _detector(model, _image(full, 96))


def rt_detr(full: bool) -> Example:
    return _rt_detr(full, "RTDetr")


def rt_detr_v2(full: bool) -> Example:
    return _rt_detr(full, "RTDetrV2")


def d_fine(full: bool) -> Example:
    return _rt_detr(full, "DFine", decoder_n_points=[3, 6, 3])


def mask2former(full: bool) -> Example:
    sizes = {} if full else {
        "feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "encoder_feedforward_dim": 32,
        "encoder_layers": 2, "decoder_layers": 3, "dim_feedforward": 32, "num_queries": 10, "num_attention_heads": 4
    }  # fmt: skip
    config = transformers.Mask2FormerConfig(backbone_config=_swin(full), use_pretrained_backbone=False, **sizes)
    inputs, outputs = _image(full, 64, 384), ["class_queries_logits", "masks_queries_logits"]
    model = transformers.Mask2FormerForUniversalSegmentation(config)
    return Example(Wrapped(model, list(inputs), outputs), inputs, outputs=outputs)


def oneformer(full: bool) -> Example:
    sizes = {} if full else {
        "conv_dim": 32, "mask_dim": 32, "hidden_dim": 32, "encoder_feedforward_dim": 32, "encoder_layers": 2,
        "decoder_layers": 3, "dim_feedforward": 32, "num_queries": 10, "num_attention_heads": 4
    }  # fmt: skip
    config = transformers.OneFormerConfig(
        backbone_config=_swin(full), use_pretrained_backbone=False, is_training=False, **sizes
    )
    inputs = {**_image(full, 64, 384), "task_inputs": torch.randint(0, 100, (1, config.task_seq_len))}
    outputs = ["class_queries_logits", "masks_queries_logits"]
    model = transformers.OneFormerForUniversalSegmentation(config)
    return Example(Wrapped(model, list(inputs), outputs), inputs, outputs=outputs)


def grounding_dino(full: bool) -> Example:
    text = (
        {} if full else {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    )
    sizes = {} if full else {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
        "num_queries": 20, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_text_len": 16
    }  # fmt: skip
    swin = _swin(full)
    swin.out_features = ["stage2", "stage3", "stage4"]
    config = transformers.GroundingDinoConfig(
        backbone_config=swin,
        text_config={"model_type": "bert", **text},
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        **sizes,
    )
    ids = torch.tensor([[101, 4937, 1012, 3899, 1012, 102]])
    inputs = {**_image(full, 128), "input_ids": ids, "attention_mask": torch.ones_like(ids)}
    model = transformers.GroundingDinoForObjectDetection(config)
    return _detector(model, inputs)


def deimv2(full: bool) -> Example:
    return _rt_detr(full, "Deimv2")


def segformer(full: bool) -> Example:
    sizes = {} if full else {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "decoder_hidden_size": 16}
    config = transformers.SegformerConfig(**sizes)
    inputs = _image(full, 64, 512)
    model = transformers.SegformerForSemanticSegmentation(config)
    return Example(Wrapped(model, list(inputs), ["logits"]), inputs)


def swin(full: bool) -> Example:
    sizes = {} if full else {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "image_size": 64}
    config = transformers.SwinConfig(**sizes)
    inputs = _image(full, 64, 224)
    model = transformers.SwinForImageClassification(config)
    return Example(Wrapped(model, list(inputs), ["logits"]), inputs)


MODELS: dict[str, Callable[[bool], Example]] = {
    "Deformable DETR": deformable_detr,
    "RF-DETR": rf_detr,
    "RT-DETR": rt_detr,
    "RT-DETRv2": rt_detr_v2,
    "D-FINE": d_fine,
    "DEIMv2": deimv2,
    "Mask2Former": mask2former,
    "OneFormer": oneformer,
    "Grounding DINO": grounding_dino,
    "SegFormer": segformer,
    "Swin": swin,
}


def enliven(example: Example) -> None:
    """Sets random weights of a size that keeps signals alive, and matching statistics of normalisations.

    The initial weights zero half of a detector.
    """
    norms = [layer for layer in example.module.modules() if isinstance(layer, nn.BatchNorm2d)]
    for layer in example.module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight)
        elif isinstance(layer, nn.Linear):
            nn.init.xavier_normal_(layer.weight)
    for layer in norms:
        layer.reset_parameters()
        layer.momentum = None  # running statistics are plain averages
        layer.train()
    example.module(*example.inputs.values())
    example.module.eval()


# Decompositions that the dynamo exporter lacks.


def _all_true(x: object) -> object:
    """torch's own checks."""
    return op.Cast(op.ReduceMin(op.Cast(x, to=6), keepdims=0), to=9)


def _so_far(x: object, filler: int) -> object:
    """Returns the rows of an integer matrix as [N, L, L]: the values up to each position, then the filler."""
    length = op.Shape(x, start=1)
    before = op.Trilu(op.Expand(op.Constant(value_int=1), op.Concat(length, length, axis=0)), upper=0)
    return op.Where(op.Cast(before, to=9), op.Unsqueeze(x, op.Constant(value_ints=[1])), op.Constant(value_int=filler))


def _cummax(x: object, dim: int) -> tuple[object, object]:
    """The cummax with which Grounding DINO finds the special tokens before each token."""
    seen = _so_far(x, -(2**62))
    largest = op.ReduceMax(seen, op.Constant(value_ints=[2]), keepdims=0)
    return largest, op.ArgMax(seen, axis=2, keepdims=0, select_last_index=1)


def _cummin(x: object, dim: int) -> tuple[object, object]:
    seen = _so_far(x, 2**62)
    minimum = op.ReduceMin(seen, op.Constant(value_ints=[2]), keepdims=0)
    return minimum, op.ArgMin(seen, axis=2, keepdims=0, select_last_index=1)


_TRANSLATIONS = {
    torch.ops.aten._is_all_true.default: _all_true,
    torch.ops.aten.cummax.default: _cummax,
    torch.ops.aten.cummin.default: _cummin,
}


def export(name: str, path: Path, exporter: str = "dynamo", full: bool = False, seed: int = 0) -> Example:
    """Writes one of MODELS; exporter: "dynamo" or "torchscript"."""
    torch.manual_seed(seed)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        example = MODELS[name](full)
        example.module.eval()
        enliven(example)
        more = {"custom_translation_table": _TRANSLATIONS}
        torch.onnx.export(
            example.module, tuple(example.inputs.values()), str(path), input_names=list(example.inputs),
            output_names=example.outputs, dynamo=exporter == "dynamo", opset_version=example.opset, verbose=False,
            **(more if exporter == "dynamo" else {}),
        )  # fmt: skip
    return example


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(MODELS))
    parser.add_argument("path", type=Path)
    parser.add_argument("--exporter", default="dynamo", choices=["dynamo", "torchscript"])
    parser.add_argument("--full", action="store_true", help="the usual size instead of a small one")
    options = parser.parse_args()
    export(options.name, options.path, exporter=options.exporter, full=options.full)


if __name__ == "__main__":
    main()
