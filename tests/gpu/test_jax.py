# SPDX-License-Identifier: Apache-2.0
"""Every operator in JAX on the GPU, compared with the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polyop._arrays.calls import operators
from tests.support.array_calls import call_of, plain_calls
from tests.support.exported_nodes import Node
from tests.support.on_gpu import CPU_ONLY, expect_close

RUNTIME = "jax"
CALLS = [(op, node) for op, node in plain_calls() if op not in CPU_ONLY]
IDS = [f"{op}-{len(node.inputs)}" for op, node in CALLS]


@pytest.mark.parametrize(("op", "node"), CALLS, ids=IDS)
def test_equals_the_cpu(op: str, node: Node) -> None:
    import jax

    import polyop.jax

    known = {i for i, given in enumerate(operators()[op]["inputs"]) if given["value"]}

    def on(platform: str) -> tuple[Any, ...]:
        device = jax.devices(platform)[0]
        inputs = [
            array if array is None or i in known else jax.device_put(array, device)
            for i, array in enumerate(node.inputs)
        ]
        with jax.default_device(device):
            result = call_of(polyop.jax, op, inputs, node.attributes)
        return tuple(result) if isinstance(result, list | tuple) else (result,)

    for ours, theirs in zip(on("cuda"), on("cpu"), strict=True):
        assert {device.platform for device in ours.devices()} == {"gpu"}
        expect_close(np.asarray(ours), np.asarray(theirs))
