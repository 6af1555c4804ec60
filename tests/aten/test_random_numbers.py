# SPDX-License-Identifier: Apache-2.0
"""Random numbers in ONNX files: their types, shapes and distributions."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from scipy import stats
from torch.distributions import Beta, Binomial, Dirichlet, Gamma, Poisson

import polyop

COUNT = 20_000
DTYPES = {"f32": torch.float32, "f64": torch.float64}
NAMES = ("poisson", "few", "gamma", "binomial", "beta", "dirichlet", "again")


class Draws(torch.nn.Module):
    def forward(
        self, rate: torch.Tensor, shape: torch.Tensor, trials: torch.Tensor, p: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        shapes = torch.stack([shape, 2 * shape, shape / 9], -1)
        return (
            torch.poisson(rate),
            Poisson(rate / 9, validate_args=False).sample(),
            Gamma(shape, rate, validate_args=False).sample(),
            Binomial(trials, p, validate_args=False).sample(),
            Beta(shape, p, validate_args=False).sample(),
            Dirichlet(shapes, validate_args=False).sample(),
            torch.poisson(rate),
        )


def _inputs(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return tuple(torch.full([COUNT], value, dtype=dtype) for value in (20.5, 0.7, 40, 0.3))


@cache
def _exported(kind: str) -> onnx.ModelProto:
    with torch.no_grad(), polyop.translations():
        program = torch.onnx.export(Draws(), _inputs(DTYPES[kind]), dynamo=True, verbose=False)
    assert program is not None
    return program.model_proto


@cache
def _session(kind: str) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.register_custom_ops_library(polyop.get_onnxruntime_op_path())
    return ort.InferenceSession(_exported(kind).SerializeToString(), options)


@cache
def _drawn(kind: str, time: int) -> dict[str, np.ndarray]:
    """Returns the outputs of one run of the file."""
    del time
    feeds = {i.name: x.numpy() for i, x in zip(_session(kind).get_inputs(), _inputs(DTYPES[kind]), strict=True)}
    return dict(zip(NAMES, _session(kind).run(None, feeds), strict=True))


@cache
def _of_torch(kind: str) -> dict[str, np.ndarray]:
    torch.manual_seed(0)
    return dict(zip(NAMES, (x.numpy() for x in Draws()(*_inputs(DTYPES[kind]))), strict=True))


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_distribution_is_pytorchs(name: str, kind: str) -> None:
    got, expected = _drawn(kind, 0)[name], _of_torch(kind)[name]
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    for column in range(3 if name == "dirichlet" else 1):
        ours, theirs = got.reshape(COUNT, -1)[:, column], expected.reshape(COUNT, -1)[:, column]
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-5
        deviation = theirs.std()
        assert abs(ours.mean() - theirs.mean()) < 7 * deviation / COUNT**0.5
        assert abs(ours.std() / deviation - 1) < 0.1
    if name == "dirichlet":
        np.testing.assert_allclose(got.sum(-1), 1, rtol=1e-5)


def test_numbers_differ_between_runs_and_calls() -> None:
    first, second = _drawn("f32", 0), _drawn("f32", 1)
    for name in NAMES:
        assert (first[name] != second[name]).mean() > 0.5, name
    assert (first["poisson"] != first["again"]).mean() > 0.5


def test_file_has_one_node_for_each_call() -> None:
    kinds = [node.op_type for node in _exported("f32").graph.node]
    assert kinds.count("RandomDistribution") == len(NAMES)
    assert sum(kind.startswith("RandomUniform") for kind in kinds) == len(NAMES)  # the seeds
