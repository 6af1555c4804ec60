# SPDX-License-Identifier: Apache-2.0
"""The work of a batch, and where it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from polyop.batch.images import ImageOptions
from polyop.batch.interface import SessionOptions


@dataclass(frozen=True)
class Job:
    """Describes how to run each sample. Can be pickled and sent to other machines."""

    model: str
    stream: str = ""  # the input with samples; "": the only one, or those that the samples name
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()  # to keep; (): all
    format: str = "npz"
    batch: int = 0  # maximum samples per run; 0: automatic
    strict: bool = False
    memory: int = 0  # bytes for what is read and not yet written; 0: automatic
    images: ImageOptions = field(default_factory=ImageOptions)
    session: SessionOptions = field(default_factory=SessionOptions)


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster and the resources of a worker on it."""

    address: str = ""  # of the cluster; "": starts one on this machine for the duration of the batch
    workers: int = 0  # 0: as many as the cluster has processors for
    processors: int = 1  # per worker
    gpus: float = 0  # per worker
