# SPDX-License-Identifier: Apache-2.0
"""Errors that end an optimization."""

from __future__ import annotations

import polyop.errors
from polyop.errors import PolyopError


class OptimizeError(PolyopError, RuntimeError):
    """The model cannot be read, run or written."""


class FileError(OptimizeError, polyop.errors.FileError):
    """A file is missing, damaged or not writable."""
