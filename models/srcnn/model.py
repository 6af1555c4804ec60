# SPDX-License-Identifier: Apache-2.0
"""SRCNN (Dong et al., "Image Super-Resolution Using Deep Convolutional Networks", 2014) with a run-time scale.

The image is enlarged with bicubic interpolation, then three convolutions (9-1-5) sharpen it. The same weights serve
every scale. Images are float [N, 3, H, W], RGB, 0..1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

WEIGHTS = Path(__file__).with_name("srcnn.npz")


class Layers(nn.Module):
    """The three convolutions; input and output [N, 3, H, W]."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 64, 9, padding=4)
        self.mapping = nn.Conv2d(64, 32, 1)
        self.reconstruction = nn.Conv2d(32, 3, 5, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.reconstruction(F.relu(self.mapping(F.relu(self.patches(x)))))

    def start_as_identity(self) -> None:
        """Initialises the first three filters to pass the image through, so that training starts at bicubic's quality.

        Images are not negative, so the ReLUs do not change them.
        """
        with torch.no_grad():
            for layer, centre in ((self.patches, 4), (self.mapping, 0), (self.reconstruction, 2)):
                layer.weight[:3] = 0
                layer.bias[:3] = 0
                for channel in range(3):
                    layer.weight[channel, channel, centre, centre] = 1


def load_weights(path: Path = WEIGHTS) -> Layers:
    """Returns the trained layers."""
    layers = Layers()
    with np.load(path) as arrays:
        layers.load_state_dict({name: torch.from_numpy(arrays[name]) for name in arrays.files})
    return layers.eval()


def save_weights(layers: Layers, path: Path = WEIGHTS) -> None:
    np.savez(path, **{name: value.detach().numpy() for name, value in layers.state_dict().items()})


class FixedScale(nn.Module):
    """`srcnn`: the scale is part of the model."""

    def __init__(self, layers: Layers, scale: float) -> None:
        super().__init__()
        self.layers, self.scale = layers, scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(F.interpolate(x, scale_factor=self.scale, mode="bicubic", align_corners=False))


class OnnxResize(torch.autograd.Function):
    """Bicubic enlargement that exports to ONNX Resize with the scales as an input."""

    @staticmethod
    def forward(_ctx, x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        scales = tuple(float(s) for s in factor[2:])
        return F.interpolate(x, scale_factor=scales, mode="bicubic", align_corners=False)

    @staticmethod
    def symbolic(g, x, factor):
        none = g.op("Constant", value_t=torch.tensor([], dtype=torch.float32))
        return g.op(
            "Resize", x, none, factor,
            mode_s="cubic", cubic_coeff_a_f=-0.75, coordinate_transformation_mode_s="half_pixel",
        )  # fmt: skip


class DynamicResize(OnnxResize):
    """The same function, exported to the custom node that polyop provides."""

    @staticmethod
    def symbolic(g, x, factor):
        resized = g.op("Just_A_Scope_Name::DynamicTRTResize", x, factor)
        # The exporter cannot infer a custom node's shape: without this, the output's channels are unknown.
        return resized.setType(x.type().with_sizes([None, 3, None, None]))


class RunTimeScale(nn.Module):
    """`srcnn2` and `srcnn3`: the scales f32[4] (1, 1, vertical, horizontal) are an input."""

    def __init__(self, layers: Layers, resize: type[OnnxResize]) -> None:
        super().__init__()
        self.layers, self.resize = layers, resize

    def forward(self, x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        return self.layers(self.resize.apply(x, factor))
