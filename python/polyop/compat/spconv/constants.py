# SPDX-License-Identifier: Apache-2.0
"""`spconv.constants`: settings that other code reads or changes. SAVED_WEIGHT_LAYOUT has an effect."""

from __future__ import annotations

import os

SAVED_WEIGHT_LAYOUT = os.environ.get("SPCONV_SAVED_WEIGHT_LAYOUT", "")
"""The layout of weights in checkpoints: "KRSC" (spconv 2.2 and newer), "RSKC" (2.1) or "RSCK" (1.x)."""
if SAVED_WEIGHT_LAYOUT not in ("", "KRSC", "RSKC", "RSCK"):
    raise ValueError(f"SPCONV_SAVED_WEIGHT_LAYOUT: expected KRSC, RSKC or RSCK, got {SAVED_WEIGHT_LAYOUT}")
ALL_WEIGHT_IS_KRSC = True
FILTER_HWIO = False
SPCONV_USE_DIRECT_TABLE = True
SPCONV_CPP_GEMM = True
SPCONV_ALLOW_TF32 = False
SPCONV_FX_TRACE_MODE = False
