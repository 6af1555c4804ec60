# SPDX-License-Identifier: Apache-2.0
"""Calls of the npm package in Node and in Chromium."""

from __future__ import annotations

import base64
import http.server
import json
import shutil
import subprocess
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

RUNNER = Path(__file__).with_name("web.mjs")
TYPES = {"float32", "float16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"}


def tensor(array: np.ndarray) -> dict[str, Any]:
    """Returns a tensor as onnxruntime-web has it."""
    assert array.dtype.name in TYPES
    return {"$tensor": array.dtype.name, "dims": list(array.shape), "data": _text(array)}


def typed(array: np.ndarray, kind: str = "Float32Array") -> dict[str, Any]:
    return {"$typed": kind, "data": _text(array)}


def _text(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def result(*keys: object) -> dict[str, Any]:
    """Returns a part of the result of an earlier call, by the number of the call and names."""
    return {"$result": list(keys)}


def run(package: Path, calls: Sequence[tuple[str, list[Any]]], folder: Path) -> list[Any]:
    """Returns the results in Node: arrays for tensors, and exceptions for errors."""
    done = subprocess.run(
        ["node", RUNNER, package, _written(calls, folder)], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return [_read(value) for value in json.loads(done.stdout)]


def run_in_chromium(package: Path, calls: Sequence[tuple[str, list[Any]]], folder: Path) -> list[Any]:
    """Returns the results in a page of headless Chromium."""
    _written(calls, folder)
    shutil.copytree(package, folder / "package")
    for file in (RUNNER, RUNNER.with_suffix(".html")):
        shutil.copy(file, folder)
    page = _Page(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
    threading.Thread(target=page.serve_forever, daemon=True).start()
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command = ["chromium", *options, f"http://127.0.0.1:{page.server_port}/web.html"]
    with page, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        has_results = page.has_results.wait(timeout=120)
        browser.terminate()
        page.shutdown()
    assert has_results, "the page sent no results"
    assert page.results.startswith("["), page.results
    return [_read(value) for value in json.loads(page.results)]


class _Page(http.server.ThreadingHTTPServer):
    """Serves a folder, and receives the results that the page sends."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.has_results = threading.Event()
        self.results = ""


class _Handler(http.server.SimpleHTTPRequestHandler):
    server: _Page
    extensions_map: ClassVar[dict[str, str]] = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".js": "text/javascript",
    }

    def do_POST(self) -> None:
        self.server.results = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(204)
        self.end_headers()
        self.server.has_results.set()

    def log_message(self, *_: Any) -> None:
        pass


def _written(calls: Sequence[tuple[str, list[Any]]], folder: Path) -> Path:
    file = folder / "calls.json"
    file.write_text(json.dumps([{"function": name, "arguments": given} for name, given in calls]))
    return file


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$error" in value:
        assert value["isPlain"], value
        return ValueError(value["$error"])
    if "$tensor" in value:
        return np.frombuffer(base64.b64decode(value["data"]), value["$tensor"]).reshape(value["dims"])
    return {key: _read(item) for key, item in value.items()}
