"""Checks of the model, the output and the runtime of a command, before its work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from polyop._commands.errors import CommandError, ExitCode, usage
from polyop._onnx.atomic_file import prepare_folder

if TYPE_CHECKING:
    from onnx import ModelProto

OLDEST_ONNXRUNTIME = (1, 20)
"""As the extras `optimize` and `batch` require."""
_RUNTIME_DOMAIN = "com.microsoft"
_STANDARD_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training")


def check_file(path: str) -> None:
    """Raises CommandError if there is no such file."""
    if not Path(path).is_file():
        raise CommandError(
            ExitCode.BAD_FILE,
            f"'{path}' does not exist" if not Path(path).exists() else f"'{path}': expected a file, got a directory",
        )


def check_output(model: str, output: str) -> None:
    """Creates the folder of an output file. Raises CommandError if the file is the model, or OSError if it cannot be
    written."""
    path = Path(output)
    if path.exists() and path.samefile(model):
        raise usage(f"--output {output}: expected another file than the model, which it would overwrite")
    prepare_folder(path)


def check_onnxruntime(oldest: tuple[int, int]) -> None:
    """Raises CommandError if ONNX Runtime is older, or ModuleNotFoundError if it is missing."""
    import onnxruntime

    release = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    if release < oldest:
        raise CommandError(
            ExitCode.NO_RUNTIME,
            f"expected ONNX Runtime {oldest[0]}.{oldest[1]} or newer, got {onnxruntime.__version__}",
            "pip install --upgrade onnxruntime",
        )


def check_model(path: str) -> ModelProto:
    """Returns the model without its external data. Raises CommandError or FileError if the file or the data is missing,
    damaged or not ONNX."""
    from polyop._onnx.files import external_files, read_model

    check_file(path)
    model = read_model(Path(path))
    external_files(model, Path(path).parent)
    return model


def check_provided(path: str) -> None:
    """Like check_model, and raises CommandError if the model has nodes of operators without a provider.

    Providers are polyop, packages, ONNX Runtime and the functions of the model.
    """
    from polyop._onnx.catalogue import is_node
    from polyop._onnx.graph import nodes_of

    model = check_model(path)
    functions = {(f.domain, f.name) for f in model.functions}
    missing = {
        f"{node.domain}::{node.op_type}"
        for node in nodes_of(model)
        if node.domain not in _STANDARD_DOMAINS
        and not node.domain.startswith(_RUNTIME_DOMAIN)
        and (node.domain, node.op_type) not in functions
        and not is_node(node.domain, node.op_type)
    }
    if missing:
        raise CommandError(
            ExitCode.NOT_PROVIDED,
            f"nobody provides {', '.join(sorted(missing))}",
            f"`polyop inspect {path}` has advice; --ops LIB adds a library of operators",
        )
