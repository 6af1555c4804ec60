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


Calls = Sequence[tuple[str, list[Any]]]


def run(package: Path, calls: Calls, folder: Path, threads: int = 1) -> list[Any]:
    """Returns the results in Node: arrays for tensors, and exceptions for errors. With 0 threads, the calls are of the
    package's scripts, which need no module."""
    command = ["node", RUNNER, package, _written(calls, folder, threads)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return _results(done.stdout, threads)


def run_in_chromium(package: Path, calls: Calls, folder: Path, threads: int = 1, is_isolated: bool = True) -> list[Any]:
    """Returns the results in a page of headless Chromium, which has one thread if it is not isolated."""
    _written(calls, folder, threads)
    shutil.copy(RUNNER, folder)
    posted = posted_by(RUNNER.with_suffix(".html"), package, folder, is_isolated)
    return _results(posted, threads if is_isolated else 1)


def posted_by(page: Path, package: Path, folder: Path, is_isolated: bool = True) -> str:
    """Opens the page in headless Chromium, in a folder with the package, and returns the JSON that it posts."""
    shutil.copytree(package, folder / "package", dirs_exist_ok=True)
    shutil.copy(page, folder)
    server = _Server(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
    server.is_isolated = is_isolated
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command = ["chromium", *options, f"http://127.0.0.1:{server.server_port}/{page.name}"]
    with server, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        has_posted = server.has_posted.wait(timeout=120)
        browser.terminate()
        server.shutdown()
    assert has_posted, "the page posted nothing"
    assert server.posted.startswith("{"), server.posted
    return server.posted


class _Server(http.server.ThreadingHTTPServer):
    """Serves a folder, and receives what the page posts."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.has_posted = threading.Event()
        self.posted = ""
        self.is_isolated = True


class _Handler(http.server.SimpleHTTPRequestHandler):
    server: _Server
    extensions_map: ClassVar[dict[str, str]] = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".js": "text/javascript",
    }

    def do_POST(self) -> None:
        self.server.posted = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(204)
        self.end_headers()
        self.server.has_posted.set()

    def end_headers(self) -> None:
        if self.server.is_isolated:  # such pages have shared memory
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def _written(calls: Calls, folder: Path, threads: int) -> Path:
    file = folder / "calls.json"
    listed = [{"function": name, "arguments": given} for name, given in calls]
    file.write_text(json.dumps({"threads": threads, "calls": listed}))
    return file


def _results(text: str, threads: int) -> list[Any]:
    found = json.loads(text)
    assert found["threads"] == threads
    return [_read(value) for value in found["results"]]


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
