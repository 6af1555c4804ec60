# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own operators as ONNX: those that its exporter writes wrongly or not at all.

polyop/_torch/translations.py applies them to exports.
"""

from polyop._aten import (  # noqa: F401 - each adds its operators to the table
    attention,
    byte_images,
    corrections,
    cumulative,
    elementary,
    fft,
    indexing,
    linalg,
    linear,
    pooling,
    quantized,
    random_numbers,
    recurrent,
    resampling,
    shapes,
    special,
    statistics,
)

from polyop._aten import complex_numbers as complex_numbers  # isort: skip - after the others, as the next one
from polyop._aten import complex_functions as complex_functions  # isort: skip - after the others
from polyop._aten import complex_linalg as complex_linalg  # isort: skip - after the others
from polyop._aten import integer_types as integer_types  # isort: skip - after the others, as the next one
from polyop._aten import types as types  # isort: skip - after the others: it leaves to them what they translate
from polyop._aten.table import TRANSLATIONS, Translation, overload

__all__ = ["TRANSLATIONS", "Translation", "overload"]
