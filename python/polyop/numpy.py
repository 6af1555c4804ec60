"""The operators as functions of NumPy arrays, without PyTorch or ONNX Runtime.

    import polyop.numpy
    keep = polyop.numpy.nms(boxes, scores, iou_threshold=0.5)

The names and arguments are those of the operators' definitions: docs/operators, torch.ops.polyop. Inputs are NumPy
arrays, objects with `__dlpack__` or the buffer protocol, or lists of numbers; contiguous memory is not copied. `out`
receives the outputs. Errors are ValueErrors with the message of every runtime. `set_num_threads` sets the number of
threads.
"""

from __future__ import annotations

from polyop._calls import call, operators, set_num_threads
from polyop._functions import define

__all__ = ["set_num_threads", *operators()]

globals().update({name: define(record, call, __name__, "out") for name, record in operators().items()})
