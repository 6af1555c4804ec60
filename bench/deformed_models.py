# SPDX-License-Identifier: Apache-2.0
"""Models with deformable convolution and random weights as ONNX files, in the form that deform_conv2d_onnx_exporter
writes: GatherND or GatherElements for each corner of the samples.

The blocks are those of BiRefNet's decoder (Zheng et al., 2024: filters of 1, 3 and 7) and of BasicVSR++'s alignment
(Chan et al., 2022: 16 groups of offsets). The rest of each model is plain convolutions.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.onnx._internal.torchscript_exporter import _type_utils

ROOT = Path(__file__).resolve().parent.parent
_SCHEMA = (
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int stride_w, "
    "int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask) -> Tensor"
)


@cache
def _operator() -> torch.library.Library:
    """Defines torchvision's operator, whose results an export does not need, and returns its library."""
    library = torch.library.Library("torchvision", "DEF")
    library.define(_SCHEMA)
    library.impl("deform_conv2d", lambda x, w, o, *more: x.new_zeros(len(x), len(w), *o.shape[2:]), "CPU")
    return library


def _register(gather: str) -> None:
    _operator()
    sys.modules.setdefault("torch.onnx._type_utils", _type_utils)  # its name in older releases
    folder = str(ROOT / ".deps" / "torchvision")
    if folder not in sys.path:
        sys.path.append(folder)
    from deform_conv2d_onnx_exporter import register_deform_conv2d_onnx_op

    register_deform_conv2d_onnx_op(use_gathernd=gather == "GatherND")


@dataclass(frozen=True)
class Form:
    """The attributes of a deformable convolution: (y, x)."""

    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    offset_groups: int = 1
    masked: bool = True


class Deformed(nn.Module):
    """A deformable convolution whose offsets and mask are computed from other features."""

    def __init__(self, channels: int, result: int, form: Form = Form(), guide: int = 0) -> None:
        super().__init__()
        self.form, points = form, form.kernel[0] * form.kernel[1] * form.offset_groups
        sampling = {"stride": form.stride, "padding": form.padding, "dilation": form.dilation}
        self.offset = nn.Conv2d(guide or channels, 2 * points, form.kernel, **sampling)
        self.mask = nn.Conv2d(guide or channels, points, form.kernel, **sampling)
        self.weight = nn.Parameter(torch.randn(result, channels // form.groups, *form.kernel) / channels**0.5)
        self.bias = nn.Parameter(torch.randn(result))

    def forward(self, x: Tensor, guide: Tensor | None = None) -> Tensor:
        guide, form = x if guide is None else guide, self.form
        return torch.ops.torchvision.deform_conv2d(
            x, self.weight, 4 * self.offset(guide), 2 * self.mask(guide).sigmoid(), self.bias, *form.stride, *form.padding,
            *form.dilation, form.groups, form.offset_groups, form.masked,
        )  # fmt: skip


class Branches(nn.Module):
    """BiRefNet's block: filters of several extents, and the mean of the map."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        extents = (1, 1, 3, 7)
        self.branches = nn.ModuleList(
            nn.Sequential(
                Deformed(channels, inner, Form((k, k), padding=(k // 2, k // 2))), nn.BatchNorm2d(inner), nn.ReLU()
            )
            for k in extents
        )
        self.mean = nn.Sequential(nn.Conv2d(channels, inner, 1), nn.ReLU())
        self.join = nn.Conv2d(inner * (len(extents) + 1), channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean = self.mean(x.mean((2, 3), keepdim=True)).expand(-1, -1, *x.shape[2:])
        return self.join(torch.cat([*(branch(x) for branch in self.branches), mean], 1)).relu()


class BiRefNet(nn.Module):
    """An encoder of plain convolutions, and a decoder with a block at each of four sizes."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels, 4, 4)
        self.down = nn.ModuleList(nn.Conv2d(channels, channels, 3, 2, 1) for _ in range(3))
        self.blocks = nn.ModuleList(Branches(channels, inner) for _ in range(4))
        self.last = nn.Conv2d(channels, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        maps = [self.first(image).relu()]
        for layer in self.down:
            maps.append(layer(maps[-1]).relu())
        x = self.blocks[0](maps[-1])
        for block, skipped in zip(self.blocks[1:], reversed(maps[:-1]), strict=True):
            x = block(functional.interpolate(x, scale_factor=2.0, mode="bilinear") + skipped)
        return functional.interpolate(self.last(x), scale_factor=4.0, mode="bilinear").sigmoid()


class BasicVSR(nn.Module):
    """Second-order alignment along some frames: features of the two previous frames are sampled for the next one."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, 1, 1)
        self.guide = nn.Conv2d(3 * channels, channels, 3, 1, 1)
        self.align = Deformed(2 * channels, channels, Form(offset_groups=groups), channels)
        self.join = nn.Sequential(nn.Conv2d(2 * channels, channels, 3, 1, 1), nn.LeakyReLU(0.1))
        self.last = nn.Sequential(nn.Conv2d(channels, 48, 3, 1, 1), nn.PixelShuffle(4))

    def forward(self, frames: Tensor) -> Tensor:
        features = self.first(frames).split(1)
        past = [features[0], features[0]]
        for now in features:
            guide = self.guide(torch.cat([*past[-2:], now], 1)).relu()
            past.append(self.join(torch.cat([self.align(torch.cat(past[-2:], 1), guide), now], 1)))
        return self.last(torch.cat(past[2:]))


def birefnet(full: bool) -> tuple[nn.Module, Tensor]:
    return (BiRefNet(64, 256), torch.rand(1, 3, 512, 512)) if full else (BiRefNet(8, 8), torch.rand(1, 3, 64, 96))


def basicvsr(full: bool) -> tuple[nn.Module, Tensor]:
    return (BasicVSR(64, 16), torch.rand(4, 3, 64, 112)) if full else (BasicVSR(8, 4), torch.rand(3, 3, 12, 16))


MODELS = {"BiRefNet's decoder": birefnet, "BasicVSR++'s alignment": basicvsr}
FORMS = (
    Form(masked=False),
    Form((1, 1), padding=(0, 0)),
    Form((7, 7), padding=(3, 3), offset_groups=2),
    Form(stride=(2, 2), padding=(0, 0), dilation=(2, 2), groups=2),
    Form((3, 5), (1, 3), (2, 0)),
    Form(stride=(9, 9), padding=(0, 0)),
)


def write(model: nn.Module, image: Tensor, path: Path, gather: str) -> None:
    _register(gather)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model.eval(), (image,), str(path), input_names=["image"], opset_version=16, dynamo=False, verbose=False
        )


def write_forms(folder: Path) -> None:
    """Writes a file for each of FORMS and each operator that gathers: 0_GatherND.onnx, …"""
    for gather in ("GatherND", "GatherElements"):
        for i, form in enumerate(FORMS):
            write(Deformed(4, 6, form), torch.rand(2, 4, 11, 13), folder / f"{i}_{gather}.onnx", gather)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=[*MODELS, "forms"], help="forms: one file for each form, into the folder PATH")
    parser.add_argument("path", type=Path)
    parser.add_argument("--full", action="store_true", help="the usual size instead of a small one")
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.name == "forms":
        write_forms(options.path)
    else:
        write(*MODELS[options.name](options.full), options.path, "GatherND")


if __name__ == "__main__":
    main()
