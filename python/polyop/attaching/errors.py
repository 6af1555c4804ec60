# SPDX-License-Identifier: Apache-2.0
"""Errors of polyop.attach."""

from __future__ import annotations

from polyop.errors import PolyopError


class AttachError(PolyopError, ValueError):
    """A model's outputs fit no head, or an option does not fit the model."""
