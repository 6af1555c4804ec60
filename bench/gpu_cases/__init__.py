# SPDX-License-Identifier: Apache-2.0
"""Calls of the operators that people use most on a GPU, and of other projects' kernels for the same, by topic."""

from __future__ import annotations

from gpu_cases import attention, boxes, convolutions, maps, points, regions, sampling, standard, voxels
from gpu_cases.cases import CASES, Case, Contest

# Importing a topic registers its cases.
__all__ = ["CASES", "TOPICS", "Case", "Contest"]
TOPICS = [regions, convolutions, attention, sampling, boxes, points, voxels, maps, standard]
