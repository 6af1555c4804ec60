# SPDX-License-Identifier: Apache-2.0
"""The benchmark cases: every operator at the sizes of real models, compared with every rival. One module per kind."""

from __future__ import annotations

from importlib import import_module

from harness import Case

# In the order of the report.
KINDS = [
    "accelerator",
    "regions",
    "sampling",
    "suppression",
    "birds_eye",
    "sparse_convolution",
    "convolutions",
    "attention",
    "maps",
    "points",
    "voxels",
    "boxes3d",
    "text",
    "half",
    "off_line",
    "small",
]
CASES: list[Case] = [case for kind in KINDS for case in import_module(f"cases.{kind}").CASES]
