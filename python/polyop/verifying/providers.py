# SPDX-License-Identifier: Apache-2.0
"""Execution providers of ONNX Runtime by the text of --provider: NAME[:key=value,…], or NAME:NUMBER for a device."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnxruntime as ort

from polyop.errors import MissingRuntimeError, PolyopError, one_line
from polyop.packages import register_all, register_packages

CPU = "CPUExecutionProvider"
_SUFFIX = "ExecutionProvider"
_OTHER_NAMES = {"directml": "dml", "trt": "tensorrt"}
_PACKAGES = {
    "webgpu": "onnxruntime-webgpu",
    "cuda": "onnxruntime-gpu",
    "tensorrt": "onnxruntime-gpu",
    "dml": "onnxruntime-directml",
    "openvino": "onnxruntime-openvino",
    "qnn": "onnxruntime-qnn",
}
_TEXT = re.compile(r"(?P<name>.+?)(?::(?P<options>[\w.]+=[^,]*(?:,[\w.]+=[^,]*)*)|:(?P<device>\d+))?", re.DOTALL)
_WITH_NUMBERS = ("cuda", "dml", "migraphx", "rocm", "tensorrt")
"""Providers whose devices have numbers, in the option device_id."""


@dataclass(frozen=True)
class Provider:
    """name: as ONNX Runtime has it. library: the path of a plugin; "" for one of ONNX Runtime's own."""

    name: str
    options: dict[str, str] = field(default_factory=dict)
    library: str = ""

    def session(self, model: Path | bytes, options: ort.SessionOptions) -> ort.InferenceSession:
        """Returns a session with polyop's operators, and the provider before the CPU. The options serve one session.

        Raises MissingRuntimeError if the provider does not load, where ONNX Runtime would use the CPU alone.
        """
        if self.library:
            options.add_provider_for_devices(self._devices(), self.options)
            given = {}
        else:
            given = {"providers": [(self.name, self.options), *([CPU] if self.name != CPU else [])]}
        # polyop's own provider has brought polyop's operators.
        (register_packages if self.library == _POLYOP else register_all)(options)
        session = ort.InferenceSession(_readable(model), options, enable_fallback=0, **given)
        if session.get_providers()[0] != self.name:
            raise MissingRuntimeError(
                f"provider '{self.name}': expected ONNX Runtime to load it, got {', '.join(session.get_providers())}",
                "ONNX Runtime's own message, with the library that is missing, is above",
            )
        return session

    def _devices(self) -> list[ort.OrtEpDevice]:
        if self.library == _POLYOP:
            from polyop._onnxruntime.provider import register

            return register()
        return _plugin_devices(self.library)


def _readable(model: Path | bytes) -> str | bytes:
    return str(model) if isinstance(model, Path) else model


_POLYOP = "polyop"


def parse(text: str) -> Provider:
    """Returns the provider of NAME[:key=value,…], where NAME is `cpu`, `webgpu`, `cuda`, …, `polyop` for polyop's own,
    or the path of a plugin library. Raises MissingRuntimeError if this ONNX Runtime does not have it."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise PolyopError("--provider: expected NAME[:key=value,…], got ''")
    name, rest = match["name"], match["options"]
    options = dict(part.split("=", 1) for part in rest.split(",")) if rest else {}
    if name.lower() == _POLYOP:
        from polyop._onnxruntime.provider import PROVIDER, why_not

        if why := why_not():
            raise MissingRuntimeError(f"provider 'polyop': {why}")
        return Provider(PROVIDER, options or {"patterns": "0"}, _POLYOP)
    if re.search(r"[/\\]|\.(so|dll|dylib)(\.|$)", name):
        return _plugin(name, options)
    known = {_short(known): known for known in ort.get_available_providers() if _short(known) != _POLYOP}
    short = _OTHER_NAMES.get(_short(name), _short(name))
    if short not in known:
        package = f"pip install {_PACKAGES[short]}, which replaces onnxruntime; or " if short in _PACKAGES else ""
        raise MissingRuntimeError(
            f"provider '{name}': expected polyop, {', '.join(known)}, which ONNX Runtime {ort.__version__} has "
            "here, or the path of a plugin library",
            f"{package}write --provider NAME:key=value,… or /path/to/plugin.so",
        )
    if device := match["device"]:
        if short not in _WITH_NUMBERS:
            raise PolyopError(
                f"--provider {text}: expected {name}:key=value,…, because only devices of {', '.join(_WITH_NUMBERS)} have "
                f"numbers, got '{device}'"
            )
        options["device_id"] = device
    return Provider(known[short], options)


def _short(name: str) -> str:
    return name.lower().removesuffix(_SUFFIX.lower())


def _plugin(path: str, options: dict[str, str]) -> Provider:
    file = Path(path).absolute()
    if not file.is_file():
        raise PolyopError(f"--provider: '{path}' does not exist")
    devices = _plugin_devices(str(file))
    return Provider(devices[0].ep_name, options, str(file))


_registered: dict[str, list[ort.OrtEpDevice]] = {}


def _plugin_devices(library: str) -> list[ort.OrtEpDevice]:
    """Registers a plugin library once, and returns its only device. Raises MissingRuntimeError or PolyopError."""
    if not hasattr(ort, "register_execution_provider_library"):
        raise MissingRuntimeError(f"provider '{library}': expected ONNX Runtime 1.23 or newer, got {ort.__version__}")
    if library not in _registered:
        before = {device.ep_name for device in ort.get_ep_devices()}
        try:
            ort.register_execution_provider_library(f"polyop-verify-{len(_registered)}", library)
        except Exception as error:  # ONNX Runtime's own types are not public
            raise PolyopError(f"provider '{library}' does not load: {one_line(error)}") from error
        _registered[library] = [device for device in ort.get_ep_devices() if device.ep_name not in before]
    devices = _registered[library]
    if not devices:
        raise MissingRuntimeError(f"provider '{library}': expected a device that it can use, found none")
    return devices[:1]


Create = Callable[[ort.SessionOptions], ort.InferenceSession]


def count_nodes(create: Create, run: Callable[[ort.InferenceSession], None]) -> Counter[str]:
    """Returns how many nodes each provider runs, by ONNX Runtime's profile of a run. What a provider fused is one
    node."""
    ran = {
        (event["args"].get("node_index"), event["name"]): event["args"].get("provider", "")
        for event in _kernel_times(create, run)
    }
    return Counter(ran.values())


def node_times(create: Create, run: Callable[[ort.InferenceSession], None], runs: int) -> list[dict[str, Any]]:
    """Returns the mean time of each node ("node", "operator", "mean_seconds"), the slowest first."""

    def repeat(session: ort.InferenceSession) -> None:
        for _ in range(runs):
            run(session)

    total: dict[str, dict[str, Any]] = {}
    for event in _kernel_times(create, repeat):
        name = event["name"].removesuffix(_KERNEL_TIME)
        new = {"node": name, "operator": event["args"].get("op_name", ""), "mean_seconds": 0.0}
        total.setdefault(name, new)["mean_seconds"] += event.get("dur", 0) * 1e-6 / runs
    return sorted(total.values(), key=lambda entry: -entry["mean_seconds"])


_KERNEL_TIME = "_kernel_time"


def _kernel_times(create: Create, run: Callable[[ort.InferenceSession], None]) -> list[dict[str, Any]]:
    """Returns the events of nodes in ONNX Runtime's profile."""
    with tempfile.TemporaryDirectory(prefix="polyop-", ignore_cleanup_errors=True) as folder:
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder, "profile"))
        session = create(options)
        run(session)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8", errors="replace"))
    return [event for event in events if event.get("cat") == "Node" and event["name"].endswith(_KERNEL_TIME)]
