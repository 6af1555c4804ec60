# SPDX-License-Identifier: Apache-2.0
"""What polyop.export returns and raises."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from polyop.errors import PolyopError

# What avoids a construct inside a package: a pattern of the error, which has the line of the package, the package, and
# its option.
_OPTIONS = (
    (
        r"value of type \w*Cache\b",
        "transformers",
        "config.use_cache = False, which leaves out the cache of keys and values",
    ),
    (r"doesn't match model", "timm", "create_model(…, dynamic_img_size=True), or strict_img_size=False"),
    (r"doesn't match model", "transformers", "interpolate_pos_encoding=True as an argument of forward()"),
    (r"modeling_big_bird\.py", "transformers", 'config.attention_type = "original_full"'),
    (r"modeling_funnel\.py", "transformers", 'config.attention_type = "factorized"'),
    (r"modeling_\w*mamba2?\.py", "polyop", "polyop.compat.transformers.use_polyop(model), whose scans are nodes"),
    (r"modeling_lightglue\.py", "transformers", "config.depth_confidence = config.width_confidence = -1.0"),
    (r"kornia\S*/lightglue\.py", "kornia", "LightGlue(…, depth_confidence=-1, width_confidence=-1)"),
    (r"torch_geometric\S*/(glob|_scatter)\.py", "torch_geometric", "size=… of a pooling, the number of graphs"),
    (r"torch_geometric\S*/_to_dense_\w+\.py", "torch_geometric", "batch_size=… and max_num_nodes=…"),
    (r"torchaudio\S*/tacotron2\.py", "torchaudio", "Tacotron2(…, decoder_early_stopping=False)"),
)


class ExportError(PolyopError, RuntimeError):
    """No exporter could write the model, or the file's outputs differ from PyTorch's. The text ends in the options of
    packages that avoid what it names."""

    def __init__(self, text: str) -> None:
        super().__init__("\n  ".join([text, *(line for line in options_of(text) if line not in text)]))


class RunError(ExportError):
    """ONNX Runtime cannot run the file for some inputs."""


class OtherBranchError(ExportError):
    """The file differs at sizes for which the program has another branch than for those of its capture."""

    def __init__(self, text: str, sizes: dict[str, int], inputs: dict[str, Tensor]) -> None:
        super().__init__(text)
        self.sizes, self.inputs = sizes, inputs


def options_of(text: str) -> Iterator[str]:
    """Yields the options of packages that avoid what an error's text names."""
    for pattern, package, option in _OPTIONS:
        if re.search(pattern, text):
            yield f"{package} avoids this: {option}"


@dataclass
class OutputReport:
    """How ONNX Runtime's result for one output compares with PyTorch's."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    scale: float  # the largest finite magnitude of PyTorch's result
    largest_difference: float  # absolute; NaN equals NaN
    agrees: bool
    why: str = ""  # the element that differs most, or the shapes and types; empty if the output agrees


@dataclass
class Exported:
    """Describes an exported file and how its outputs compare with PyTorch's."""

    path: Path
    exporter: str
    opsets: dict[str, int]
    nodes: Counter[str]  # "domain::Type" of custom nodes, "Type" of standard ones
    outputs: list[OutputReport]  # of the example
    translated: Counter[str] = field(default_factory=Counter)  # calls of PyTorch's operators that polyop translated
    assumes_sizes: bool = False  # the file may be wrong if a size that depends on values of tensors is 0 or 1
    warnings: list[str] = field(default_factory=list)  # what the TorchScript exporter wrote as the example has it
    fallback: str = ""  # why the dynamo exporter could not write the model, if "auto" chose the other one
    branches_of: dict[str, int] = field(default_factory=dict)
    """The sizes whose branches the file has, if those of the example are not right for all sizes."""
    compared: list[dict[str, int]] = field(default_factory=list)
    """The sizes that differ from the example's in further comparisons, each with other data."""
    not_compared: list[str] = field(default_factory=list)
    """Sizes, inputs and conditions that were not compared, and why."""

    def summary(self) -> str:
        custom = ", ".join(f"{name} x{n}" for name, n in sorted(self.nodes.items()) if "::" in name) or "none"
        count = sum(self.nodes.values())
        nodes = "1 node" if count == 1 else f"{count} nodes"
        text = f"{self.path.name}: {nodes} by the {self.exporter} exporter; custom: {custom}"
        if self.translated:
            text += "; translated: " + ", ".join(f"{name} x{n}" for name, n in sorted(self.translated.items()))
        if self.assumes_sizes:
            text += "; assumed: sizes that depend on values of tensors are 2 or more"
        if self.fallback:
            text += f"\nthe dynamo exporter cannot write the model: {self.fallback}"
        if self.branches_of:
            text += f"\nbranches on sizes: those of {described(self.branches_of)}"
        for warning in self.warnings:
            text += f"\nas the example has it: {warning}"
        return text

    def comparisons(self) -> str:
        """Returns lines that say at which sizes, in addition to the example's, the file agrees with PyTorch."""
        sizes = "; ".join(described(run) for run in self.compared if run)
        lines = [f"also equal with other data{' and sizes: ' + sizes if sizes else ''}"] if self.compared else []
        return "\n".join([*lines, *(f"not compared: {text}" for text in self.not_compared)])

    def table(self) -> Table:
        table = Table("output", "type", "shape", "largest difference", "agrees", box=box.SIMPLE)
        for o in self.outputs:
            shape = " x ".join(map(str, o.shape)) or "scalar"
            agrees = "yes" if o.agrees else "[red]no[/red]"
            table.add_row(escape(o.name), o.dtype, shape, f"{o.largest_difference:.3g}", agrees)
        return table


def described(sizes: Mapping[str, int]) -> str:
    """Returns sizes as a text, such as "height 37, width 41"."""
    return ", ".join(f"{name} {size}" for name, size in sizes.items())


def listed(lines: Sequence[str], limit: int = 4) -> list[str]:
    """Returns the first lines, and how many follow."""
    return [*lines[:limit], *([f"… {len(lines) - limit} more"] if len(lines) > limit else [])]
