# SPDX-License-Identifier: Apache-2.0
"""Writes model repositories for Triton Inference Server, for models with polyop's operators.

from polyop import triton

triton.write_repository("srcnn.onnx", "repository", at="/models")

`polyop triton` is its command line. The server itself is NVIDIA's.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx

from polyop._base.libraries import get_onnxruntime_op_path
from polyop._base.packages import libraries as installed
from polyop._onnx.files import copy_external_files, read_model
from polyop.batch.errors import BatchError
from polyop.batch.interface import SessionOptions, open_model
from polyop.triton import engines, trial
from polyop.triton.config import Config

__all__ = ["Written", "write_repository"]

ENGINES = (".engine", ".plan")


@dataclass
class Written:
    """The files that were written, and the command that starts the server."""

    files: list[str] = field(default_factory=list)
    command: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Serving:
    """Options of `write_repository` for every kind of model."""

    largest_batch: int
    delay: int
    instances: int
    threads: int
    gpu: bool

    def batch_size(self, max_batch: int) -> int:
        """Returns the maximum number of requests per run; 0 means one by one."""
        batch = min(self.largest_batch, max_batch)
        return batch if batch > 1 else 0


def write_repository(
    model: str | Path,
    repository: str | Path,
    *,
    name: str = "",
    backend: str = "onnxruntime",
    sets: Sequence[str] = (),
    libraries: Sequence[str] = (),
    largest_batch: int = 8,
    delay: int = 1000,
    instances: int = 1,
    threads: int = 0,
    gpu: bool = False,
    at: str = "",
) -> Written:
    """Writes the folder `repository`/NAME: config.pbtxt, the model, its libraries and a README. Keeps other models.

    Args:
        model: an ONNX file, or a TensorRT engine that `polyop convert` wrote.
        repository: the folder of the repository.
        name: of the model in the server; the file's name by default.
        backend: of ONNX files: "onnxruntime", or "python", which runs them with `polyop.session`.
        sets: "NAME=1,1,3,3": inputs that become constants with these values.
        libraries: further libraries of operators. Those of installed packages are included.
        largest_batch, delay: the maximum number of requests per run, and the microseconds that one waits for others.
        instances, threads: the number of concurrent runs, and of threads per run; 0: all cores.
        gpu: runs instances on GPUs.
        at: the path of the repository on the server, such as /models in a container; its own path by default.

    Raises BatchError.
    """
    model = Path(model)
    name = name or re.sub(r"\W", "_", model.stem)
    if not re.fullmatch(r"\w[\w.-]*", name):  # the name of a folder in the repository: neither .. nor hidden
        raise BatchError(f"name: expected a letter, a digit or _, then also . and -, got '{name}'")
    folder = Path(repository).absolute() / name
    folder_on_server = f"{(at or str(folder.parent)).rstrip('/')}/{name}"
    written = Written()
    serving = _Serving(largest_batch, delay, instances, threads, gpu)
    if model.suffix in ENGINES:
        if sets or libraries:
            raise BatchError("an engine cannot get other constants or libraries", "pass them to `polyop convert`")
        config, preload = _engine(model, folder, folder_on_server, serving, written)
    else:
        if backend not in ("onnxruntime", "python"):
            raise BatchError(f"backend: expected onnxruntime or python, got '{backend}'")
        file = _prepared(model, folder, sets, libraries, written)
        config, preload = _onnx(file, folder, folder_on_server, backend, serving, libraries, written), ""
    _write(folder / "config.pbtxt", config.text(), written)
    root = folder_on_server.rpartition("/")[0] or "/"
    written.command = f"{preload}tritonserver --model-repository={root}"
    _write(folder / "README.md", _readme(config, folder.parent, root, written), written)
    return written


def _prepared(model: Path, folder: Path, sets: Sequence[str], libraries: Sequence[str], written: Written) -> Path:
    """Writes the model with its constants to the repository. Returns the file."""
    opened = open_model(model, SessionOptions(libraries=tuple(libraries)))
    constants = opened.set_values(sets)
    file = folder / "1" / "model.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    _copy_model(model, file, constants, written)
    return file


def _onnx(
    file: Path,
    folder: Path,
    folder_on_server: str,
    backend: str,
    serving: _Serving,
    libraries: Sequence[str],
    written: Written,
) -> Config:
    opened = open_model(file, SessionOptions(libraries=tuple(libraries)))
    outputs = trial.with_ranks(opened)
    can_batch, note = trial.batches(opened)
    written.notes += [note] if note else []
    own = [Path(library) for library in libraries]
    if backend == "onnxruntime":
        all_libraries = [Path(get_onnxruntime_op_path()), *(path for _, path in installed("onnxruntime")), *own]
        taken = [f"{folder_on_server}/{_copy(path, folder / path.name, written).name}" for path in all_libraries]
        parameters = {"intra_op_thread_count": str(serving.threads)} if serving.threads else {}
    else:
        further = [f"{folder_on_server}/{_copy(path, folder / path.name, written).name}" for path in own]
        taken, parameters = [], {"threads": str(serving.threads), "op_libraries": ":".join(further)}
        _copy(Path(__file__).with_name("server_model.py"), folder / "1" / "model.py", written)
    return Config(
        folder.name, backend, list(opened.inputs.values()), outputs, serving.batch_size(serving.largest_batch if can_batch else 0),
        serving.delay, serving.instances, serving.gpu, taken, parameters,
    )  # fmt: skip


def _engine(
    model: Path, folder: Path, folder_on_server: str, serving: _Serving, written: Written
) -> tuple[Config, str]:
    """Returns the configuration, and the prefix of the server's command."""
    from polyop.tensorrt import get_tensorrt_op_path

    inputs, outputs, max_batch, plugins = engines.read(model)
    _copy(model, folder / "1" / "model.plan", written)
    preload = ""
    if plugins:
        library = get_tensorrt_op_path()
        if not library:
            raise BatchError("the engine needs polyop's plugins, but this polyop was built without CUDA")
        preload = f"LD_PRELOAD={folder_on_server}/{_copy(Path(library), folder / Path(library).name, written).name} "
    config = Config(
        folder.name, "tensorrt", inputs, outputs, serving.batch_size(max_batch), serving.delay, serving.instances, True
    )
    return config, preload


def _copy_model(model: Path, file: Path, constants: Mapping[str, np.ndarray], written: Written) -> None:
    """Copies the model and its external tensors. Inputs in `constants` become initializers."""
    proto = read_model(model)
    written.files += map(str, copy_external_files(proto, model, file.parent, overwrite=True))
    if not constants:
        _copy(model, file, written)
        return
    kept = [value for value in proto.graph.input if value.name not in constants]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, key) for key, array in constants.items())
    onnx.save(proto, file)
    written.files.append(str(file))


def _copy(source: Path, target: Path, written: Written) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    written.files.append(str(target))
    return target


def _write(path: Path, text: str, written: Written) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    written.files.append(str(path))


def _readme(config: Config, repository: Path, root: str, written: Written) -> str:
    needs = {
        "onnxruntime": "a server whose backend has ONNX Runtime 1.17 or newer; polyop's operators are in the libraries here",
        "python": "a server with the Python backend, and `pip install 'polyop[batch]'` in its Python",
        "tensorrt": "a server with the TensorRT version that the engine was built with, and the same kind of GPU",
    }[config.backend]
    tensors = [
        *(f"| {t.name} | input | {t} |" for t in config.inputs),
        *(f"| {t.name} | output | {t} |" for t in config.outputs),
    ]
    batching = (
        f"Up to {config.largest_batch} requests run in a batch; a request waits up to {config.delay} microseconds for others."
        if config.largest_batch
        else "Requests run one by one. Shapes are the model's, including the first dimension."
    )
    mount = (
        f"\nIn a container the repository is mounted: `docker run -v {repository}:{root} …`\n"
        if str(repository) != root
        else ""
    )
    lines = "\n".join(tensors)
    notes = "".join(f"\n{note}\n" for note in written.notes)
    return f"""# {config.name}

It needs {needs}. Start it with

```
{written.command}
```
{mount}
| tensor | | type |
| --- | --- | --- |
{lines}

{batching}
{notes}"""
