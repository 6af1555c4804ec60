# SPDX-License-Identifier: Apache-2.0
"""Triton's config.pbtxt: the description of a model in protobuf's text format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polyop.batch.interface import Tensor


@dataclass(frozen=True)
class Config:
    name: str
    backend: str  # Triton's name
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    largest_batch: int  # 0: the first dimensions are not batches
    delay: int = 0  # maximum microseconds that a request waits for others
    instances: int = 1
    gpu: bool = False
    libraries: Sequence[str] = ()  # of operators, at the server's paths
    parameters: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        lines = [
            f"name: {_quoted(self.name)}",
            f"backend: {_quoted(self.backend)}",
            f"max_batch_size: {self.largest_batch}",
            *(self._tensor("input", tensor) for tensor in self.inputs),
            *(self._tensor("output", tensor) for tensor in self.outputs),
            f"instance_group [ {{ count: {self.instances} kind: {'KIND_GPU' if self.gpu else 'KIND_CPU'} }} ]",
        ]
        if self.largest_batch:
            lines.append(f"dynamic_batching {{ max_queue_delay_microseconds: {self.delay} }}")
        if self.libraries:
            names = ", ".join(map(_quoted, self.libraries))
            lines.append(f"model_operations {{ op_library_filename: [ {names} ] }}")
        for key, value in self.parameters.items():
            lines.append(f"parameters {{ key: {_quoted(key)} value {{ string_value: {_quoted(value)} }} }}")
        return "\n".join(lines) + "\n"

    def _tensor(self, kind: str, tensor: Tensor) -> str:
        extents = [extent if isinstance(extent, int) else -1 for extent in tensor.shape]
        reshape = ""
        if self.largest_batch:
            extents = extents[1:]
        if not extents:  # Triton requires a dimension
            extents, reshape = [1], " reshape { shape: [ ] }"
        dims = ", ".join(map(str, extents))
        return f"{kind} [ {{ name: {_quoted(tensor.name)} data_type: {_type(tensor)} dims: [ {dims} ]{reshape} }} ]"


def _type(tensor: Tensor) -> str:
    """Returns Triton's name of a type: TYPE_FP32, TYPE_INT64, …"""
    return f"TYPE_{tensor.dtype.name.upper().replace('FLOAT', 'FP')}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
