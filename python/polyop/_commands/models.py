"""Checks of the model of a command."""

from __future__ import annotations

from pathlib import Path

from polyop._commands.errors import CommandError, ExitCode

_RUNTIME_DOMAIN = "com.microsoft"
_STANDARD_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training")


def check_file(path: str) -> None:
    """Raises CommandError if there is no such file."""
    if not Path(path).is_file():
        raise CommandError(
            ExitCode.BAD_FILE,
            f"'{path}' does not exist" if not Path(path).exists() else f"'{path}': expected a file, got a directory",
        )


def check_model(path: str) -> None:
    """Raises CommandError or FileError if the file is missing, damaged or not ONNX."""
    from polyop._onnx.files import read_model

    check_file(path)
    read_model(Path(path))


def check_provided(path: str) -> None:
    """Like check_model, and raises CommandError if the model has nodes of operators without a provider.

    Providers are polyop, packages, ONNX Runtime and the functions of the model.
    """
    from polyop._onnx.catalogue import is_node
    from polyop._onnx.files import read_model
    from polyop._onnx.graph import nodes_of

    check_file(path)
    model = read_model(Path(path))
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
