# SPDX-License-Identifier: Apache-2.0
"""A sample of the whole models that tests/support/whole_models.py exports."""

from __future__ import annotations

import pytest
import torch

from tests.support.whole_models import build, outcome

DETECTOR = "transformers/object_detection/rt_detr"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [DETECTOR, "transformers/keypoint_detection/superpoint", "timm/family/resnet", "timm/family/convnext"]
)
def test_exported_models_are_equal(name: str) -> None:
    status, reason = outcome(name)
    assert status == "right", reason


@pytest.mark.slow
def test_detectors_choose_the_same_queries_in_float64() -> None:
    """With weights that are not scaled, rounding errors are 1,000 times the distance of two scores."""
    model, pixels = build(DETECTOR)
    with torch.no_grad():
        narrow = model(pixels)
        wide = model.double()(pixels.double())
    for a, b in zip(narrow, wide, strict=True):
        torch.testing.assert_close(a.double(), b.double(), rtol=1e-3, atol=1e-4)
