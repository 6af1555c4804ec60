# SPDX-License-Identifier: Apache-2.0
"""A model in a runtime: one of the two that are compared."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from polyop.errors import MissingRuntimeError, PolyopError

if TYPE_CHECKING:
    import numpy as np
    from onnx import ModelProto

    from polyop.verifying.providers import Provider

KINDS = ("onnxruntime", "kernels", "functions", "threads", "onnx", "provider", "openvino", "openvino-default")
"""How an ONNX file can run here with other outputs than its own."""

Arrays = dict[str, "np.ndarray"]


@dataclass(frozen=True)
class How:
    """How a model runs. `kind` and `value` are those of `polyop verify --against KIND=VALUE`:

    onnxruntime       in ONNX Runtime with polyop's kernels; `value` may be a provider
    kernels           with polyop's reference kernels
    functions         without polyop, by the model's functions
    threads           with this many threads
    onnx              another file
    provider          in this execution provider
    openvino          in OpenVINO's CPU plugin, in f32
    openvino-default  with the precision that OpenVINO chooses
    """

    kind: str = "onnxruntime"
    value: str = ""
    threads: int = 0
    libraries: tuple[str, ...] = ()
    accelerate: bool = False
    provider: str = ""  # of another ONNX file

    @property
    def file(self) -> str:
        """The other file that it names, or ""."""
        return self.value if self.kind in ("onnx", "openvino", "openvino-default", "engine") else ""

    @property
    def text(self) -> str:
        return f"{self.kind}={self.value}" if self.value else self.kind


_REAL = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "f32": "float32",
    "f16": "float16",
    "f64": "float64",
}


def _as_real(array: np.ndarray, kind: str | None) -> np.ndarray:
    """Returns real numbers in the type of an input: a half-precision file may have inputs of it."""
    return array.astype(kind) if kind and array.dtype.kind == "f" and array.dtype.name != kind else array


class Side(Protocol):
    """A model that is loaded. runtime: its name and version; inputs, outputs: names."""

    @property
    def runtime(self) -> str: ...
    @property
    def inputs(self) -> Sequence[str]: ...
    @property
    def outputs(self) -> Sequence[str]: ...
    def run(self, feeds: Mapping[str, np.ndarray]) -> Arrays: ...


def open_side(model: Path | ModelProto, how: How, folder: Path | None = None) -> Side:
    """Loads a model. folder: of the external data of a message. Raises the runtime's error."""
    if how.kind.startswith("openvino"):
        return InOpenVino(model, how, folder)
    if how.kind == "engine":
        return InTensorRt(model)
    return InOnnxRuntime(model, how, folder)


class InOnnxRuntime:
    def __init__(self, model: Path | ModelProto, how: How, folder: Path | None = None) -> None:
        import onnxruntime as ort

        self._model = model if isinstance(model, Path) else model.SerializeToString()
        self._how, self._folder = how, folder
        self._provider = self._parsed()
        self._session = self._create(ort.SessionOptions())
        self.inputs = [i.name for i in self._session.get_inputs()]
        self.outputs = [o.name for o in self._session.get_outputs()]
        name = "" if self._provider is None else f", {self._provider.name}"
        self.runtime = f"ONNX Runtime {ort.__version__}{name}"

    @property
    def session(self) -> Any:
        return self._session

    def run(self, feeds: Mapping[str, np.ndarray]) -> Arrays:
        results = self._session.run(self.outputs, self._fitting(feeds))
        return dict(zip(self.outputs, results, strict=True))

    def _fitting(self, feeds: Mapping[str, np.ndarray]) -> Arrays:
        types = {i.name: _REAL.get(i.type) for i in self._session.get_inputs()}
        return {name: _as_real(feeds[name], types[name]) for name in self.inputs}

    def where(self, feeds: Mapping[str, np.ndarray]) -> str:
        """Returns how many nodes the provider runs, or "" if none was named. Raises PolyopError if it runs none."""
        if self._provider is None:
            return ""
        nodes, name = self._nodes_by_provider(feeds), self._provider.name
        total, here = sum(nodes.values()), nodes.get(name, 0)
        if total and not here:
            raise PolyopError(f"{name} ran none of the {total} node(s): ONNX Runtime's CPU provider ran all")
        return f"{name} ran {here} of {total} node(s)"

    def _nodes_by_provider(self, feeds: Mapping[str, np.ndarray]) -> dict[str, int]:
        from polyop.verifying.providers import count_nodes

        return dict(count_nodes(self._create, lambda session: session.run(None, self._fitting(feeds))))

    def node_times(self, feeds: Mapping[str, np.ndarray], runs: int) -> list[dict[str, Any]]:
        """Returns the mean time of each node, the slowest first."""
        from polyop.verifying.providers import node_times

        return node_times(self._create, lambda session: session.run(None, self._fitting(feeds)), runs)

    def _parsed(self) -> Provider | None:
        from polyop.verifying.providers import parse

        how = self._how
        text = how.provider or (how.value if how.kind in ("provider", "onnxruntime") else "")
        return parse(text) if text else None

    def _create(self, options: Any) -> Any:
        import onnxruntime as ort

        from polyop.verifying.providers import CPU, Provider

        how = self._how
        options.intra_op_num_threads = int(how.value) if how.kind == "threads" else how.threads
        options.log_severity_level = 4  # errors are exceptions, whose text is escaped
        if self._folder is not None and isinstance(self._model, bytes):
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path", str(self._folder.absolute())
            )
        for library in how.libraries:
            options.register_custom_ops_library(library)
        if how.accelerate:
            self._accelerate(options)
        if how.kind == "functions":
            model = str(self._model) if isinstance(self._model, Path) else self._model
            return ort.InferenceSession(model, options, providers=[CPU], enable_fallback=0)
        provider = self._provider or Provider(CPU)
        with _reference_kernels(how.kind == "kernels"):
            return provider.session(self._model, options)

    def _accelerate(self, options: Any) -> None:
        import onnx

        from polyop._base.libraries import get_accelerator_path
        from polyop._onnx.graph import opset_of

        model = (
            onnx.load_from_string(self._model)
            if isinstance(self._model, bytes)
            else onnx.load(self._model, load_external_data=False)
        )
        options.add_session_config_entry("polyop.opset", str(opset_of(model)))
        options.register_custom_ops_library(get_accelerator_path())


@contextmanager
def _reference_kernels(use: bool) -> Iterator[None]:
    """Sessions that this thread creates run the naive kernels of polyop and of packages."""
    if not use:
        yield
        return
    from polyop._arrays.calls import library
    from polyop.packages import libraries

    loaded = [library(), *(ctypes.CDLL(str(path)) for _, path in libraries("onnxruntime"))]
    for each in loaded:
        each.polyop_use_reference_kernels(1)
    try:
        yield
    finally:
        for each in loaded:
            each.polyop_use_reference_kernels(-1)


class InOpenVino:
    def __init__(
        self,
        model: Path | ModelProto,
        how: How,
        folder: Path | None = None,
        config: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        import openvino

        f32 = {} if how.kind == "openvino-default" else {"INFERENCE_PRECISION_HINT": "f32"}
        threads = {"INFERENCE_NUM_THREADS": how.threads} if how.threads else {}
        core = openvino_core(how)
        with read_openvino(core, model, folder) as read:
            # The compiled model's ports also have the names of values that became the same, such as those of casts.
            self.inputs = [name_of(port) for port in read.inputs]
            self.outputs = [name_of(port) for port in read.outputs]
            self._compiled = core.compile_model(read, "CPU", {**f32, **threads, **config})
        self._request = self._compiled.create_infer_request()
        precision = self._compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
        self.runtime = f"OpenVINO {openvino.__version__.split('-')[0]}, {precision}"

    @property
    def request(self) -> Any:
        return self._request

    def run(self, feeds: Mapping[str, np.ndarray]) -> Arrays:
        self.infer(feeds)
        return self.results()

    def results(self) -> Arrays:
        """Returns the outputs of the last run."""
        ports = zip(self.outputs, self._compiled.outputs, strict=True)
        return {name: self._request.get_tensor(port).data.copy() for name, port in ports}

    def infer(self, feeds: Mapping[str, np.ndarray]) -> None:
        """OpenVINO 2026 loses the errors of `infer` with one thread."""
        ports = zip(self.inputs, self._compiled.inputs, strict=True)
        given = {port: _as_real(feeds[name], _REAL.get(port.element_type.get_type_name())) for name, port in ports}
        self._request.start_async(given, share_inputs=True)
        self._request.wait()


def openvino_core(how: How) -> Any:
    import polyop.openvino

    core = polyop.openvino.core()
    for library in how.libraries:
        core.add_extension(library)
    return core


class InTensorRt:
    """An engine of `polyop convert`, on a GPU."""

    def __init__(self, path: Path) -> None:
        import torch

        from polyop.tensorrt import TRTWrapper

        if not torch.cuda.is_available():
            raise MissingRuntimeError(f"{path}: an engine needs a GPU, and torch finds none")
        self._engine = TRTWrapper(str(path))
        described = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
        self.runtime = str(described["runtime"])
        self.inputs, self.outputs = list(described["inputs"]), list(described["outputs"])

    def run(self, feeds: Mapping[str, np.ndarray]) -> Arrays:
        import torch

        given = {name: torch.from_numpy(feeds[name]).cuda() for name in self.inputs}
        return {name: tensor.cpu().numpy() for name, tensor in self._engine(given).items()}


@contextmanager
def read_openvino(core: Any, model: Path | ModelProto, folder: Path | None = None) -> Iterator[Any]:
    """Yields an ONNX file or one of OpenVINO's as a model of OpenVINO. folder: of the external data of a message."""
    if not isinstance(model, Path):
        yield core.read_model((model if folder is None else _with_data(model, folder)).SerializeToString())
    elif model.suffix.lower() == ".xml" or not model.is_symlink():
        yield core.read_model(model)
    else:
        from polyop._onnx.files import without_links

        with without_links(model) as file:
            yield core.read_model(file)


def _with_data(model: ModelProto, folder: Path) -> ModelProto:
    import onnx

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    onnx.load_external_data_for_model(copy, str(folder))
    return copy


def name_of(port: Any) -> str:
    return str(port.any_name if port.names else port.node.friendly_name)


def files_of(how: How, model: Path) -> tuple[Path, ModelProto, Path]:
    """Returns the file of a side, its message and the folder of its external data. Raises PolyopError if it is not
    ONNX."""
    from polyop._onnx.files import data_folder, external_files, read_model

    path = Path(how.file) if how.file else model
    if path.suffix.lower() in (".xml", ".engine", ".plan", ".trt"):
        raise PolyopError(f"'{path}': expected an ONNX file, whose inner values can be outputs")
    message = read_model(path)
    return path, message, data_folder(path, external_files(message, path))


def without_file(how: How) -> How:
    """Returns how the side runs, for another file."""
    return replace(how, value="") if how.file else how
