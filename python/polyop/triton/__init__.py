"""Model repositories for Triton Inference Server, of models with polyop's operators.

from polyop import triton

triton.write_repository("srcnn.onnx", "repository", at="/models")

`polyop triton` is its command line. The server is NVIDIA's: polyop writes what it reads.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx

import polyop
from polyop.batch.errors import BatchError
from polyop.batch.interface import SessionOptions, open_model
from polyop.packages import libraries as installed
from polyop.triton import engines, trial
from polyop.triton.config import Config

__all__ = ["Written", "write_repository"]

ENGINES = (".engine", ".plan")


@dataclass
class Written:
    """What there is now, and how the server is started."""

    files: list[str] = field(default_factory=list)
    command: str = ""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Serving:
    """As in `write_repository`."""

    largest_batch: int
    delay: int
    instances: int
    threads: int
    gpu: bool

    def together(self, most: int) -> int:
        """How many requests run together where the model takes so many; 0: Triton's word for one by one."""
        batch = min(self.largest_batch, most)
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
    """Writes the folder `repository`/NAME: config.pbtxt, the model, what it needs and a README. Other models stay.

    model: an ONNX file, or a TensorRT engine that `polyop convert` made.
    name: of the model in the server; the file's if not given.
    backend: of ONNX files: "onnxruntime", or "python", which runs them by `polyop.session`.
    sets: "NAME=1,1,3,3": inputs that get these values for good.
    libraries: further ones of operators. Installed packages of operators are taken along too.
    largest_batch, delay: how many requests run together, and how many microseconds one waits for others.
    instances, threads: how many runs there are at the same time, and of how many threads each; 0: all cores.
    gpu: instances on GPUs.
    at: where the server sees the repository, such as /models in a container; where it lies if not given.

    Raises BatchError.
    """
    model = Path(model)
    name = name or re.sub(r"\W", "_", model.stem)
    if not re.fullmatch(r"[\w.-]+", name):
        raise BatchError(f"'{name}' is no name for a model: letters, digits, _, . and - are")
    folder = Path(repository).absolute() / name
    place = f"{(at or str(folder.parent)).rstrip('/')}/{name}"
    written = Written()
    serving = _Serving(largest_batch, delay, instances, threads, gpu)
    if model.suffix in ENGINES:
        if sets or libraries:
            raise BatchError("an engine has its inputs and plugins for good", "say them to `polyop convert`")
        config, preload = _engine(model, folder, place, serving, written)
    else:
        if backend not in ("onnxruntime", "python"):
            raise BatchError(f"the backend '{backend}' is neither onnxruntime nor python")
        file = _prepared(model, folder, sets, libraries, written)
        config, preload = _onnx(file, folder, place, backend, serving, libraries, written), ""
    _write(folder / "config.pbtxt", config.text(), written)
    root = place.rpartition("/")[0] or "/"
    written.command = f"{preload}tritonserver --model-repository={root}"
    _write(folder / "README.md", _readme(config, folder.parent, root, written), written)
    return written


def _prepared(model: Path, folder: Path, sets: Sequence[str], libraries: Sequence[str], written: Written) -> Path:
    """The model's file in the repository, in which inputs that are set have their values."""
    opened = open_model(model, SessionOptions(libraries=tuple(libraries)))
    constants = opened.set_values(sets)
    file = folder / "1" / "model.onnx"
    file.parent.mkdir(parents=True, exist_ok=True)
    _copy_model(model, file, constants, written)
    return file


def _onnx(
    file: Path, folder: Path, place: str, backend: str, serving: _Serving, libraries: Sequence[str], written: Written
) -> Config:
    opened = open_model(file, SessionOptions(libraries=tuple(libraries)))
    outputs = trial.with_ranks(opened)
    together, note = trial.batches(opened)
    written.notes += [note] if note else []
    own = [Path(library) for library in libraries]
    if backend == "onnxruntime":
        needed = [Path(polyop.get_onnxruntime_op_path()), *(path for _, path in installed("onnxruntime")), *own]
        taken = [f"{place}/{_copy(path, folder / path.name, written).name}" for path in needed]
        parameters = {"intra_op_thread_count": str(serving.threads)} if serving.threads else {}
    else:
        further = [f"{place}/{_copy(path, folder / path.name, written).name}" for path in own]
        taken, parameters = [], {"threads": str(serving.threads), "op_libraries": ":".join(further)}
        _copy(Path(__file__).with_name("server_model.py"), folder / "1" / "model.py", written)
    return Config(
        folder.name, backend, list(opened.inputs.values()), outputs, serving.together(serving.largest_batch if together else 0),
        serving.delay, serving.instances, serving.gpu, taken, parameters,
    )  # fmt: skip


def _engine(model: Path, folder: Path, place: str, serving: _Serving, written: Written) -> tuple[Config, str]:
    """And what stands before the server's command."""
    from polyop.tensorrt import get_tensorrt_op_path

    inputs, outputs, most, plugins = engines.read(model)
    _copy(model, folder / "1" / "model.plan", written)
    preload = ""
    if plugins:
        library = get_tensorrt_op_path()
        if not library:
            raise BatchError("the engine needs polyop's plugins, and polyop was built without CUDA here")
        preload = f"LD_PRELOAD={place}/{_copy(Path(library), folder / Path(library).name, written).name} "
    config = Config(
        folder.name, "tensorrt", inputs, outputs, serving.together(most), serving.delay, serving.instances, True
    )
    return config, preload


def _copy_model(model: Path, file: Path, constants: dict, written: Written) -> None:
    """With its tensors that lie outside; inputs with a value become initializers."""
    from polyop.optimizing.files import locations

    for location in locations(model):
        _copy(model.parent / location, file.parent / location, written)
    if not constants:
        _copy(model, file, written)
        return
    proto = onnx.load(model, load_external_data=False)
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
        "onnxruntime": "a server with the ONNX Runtime backend, of ONNX Runtime 1.17 or newer; polyop's operators come from the libraries here",
        "python": "a server with the Python backend, whose Python has `pip install 'polyop[batch]'`",
        "tensorrt": "a server with the TensorRT that the engine was built with, and a GPU like that of the build",
    }[config.backend]
    tensors = [
        *(f"| {t.name} | input | {t} |" for t in config.inputs),
        *(f"| {t.name} | output | {t} |" for t in config.outputs),
    ]
    together = (
        f"Up to {config.largest_batch} requests run together; one waits {config.delay} microseconds for others."
        if config.largest_batch
        else "Requests run one by one: shapes are the model's, with the first extent."
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

{together}
{notes}"""
