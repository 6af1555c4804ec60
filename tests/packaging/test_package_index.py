# SPDX-License-Identifier: Apache-2.0
"""tools/package_index.py: pip installs from the index that it writes, and what it installs runs README's example."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import re
import shlex
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import polyop
from tests.support.processes import ROOT, run

VERSION = polyop.__version__


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yields the address of the index, which this machine alone reaches."""
    handler = functools.partial(_Quiet, directory=folder / "index")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple/"
        server.shutdown()


def write_index(folder: Path) -> str:
    return run(sys.executable, ROOT / "tools" / "package_index.py", folder, VERSION)


def tiny_wheel(folder: Path, project: str, version: str) -> Path:
    """Writes a wheel of one module."""
    path = folder / f"{project}-{version}-py3-none-any.whl"
    metadata = f"{project}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{project}_module.py", f"version = '{version}'\n")
        wheel.writestr(f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n")
        wheel.writestr(
            f"{metadata}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{metadata}/RECORD", "")
    return path


def test_pip_installs_the_version_and_no_other_file(tmp_path: Path) -> None:
    wheels = [tiny_wheel(tmp_path, "polyop", VERSION), tiny_wheel(tmp_path, "polyop_cuda13", VERSION)]
    tiny_wheel(tmp_path, "polyop", "99.0.0")
    others = [f"polyop-{VERSION}.tgz", f"polyop_{VERSION}_amd64.deb"]
    of_this_machine = f"polyop-{VERSION}-py3-none-linux_x86_64.whl"
    for name in (*others, of_this_machine):
        (tmp_path / name).write_bytes(b"a package")
    write_index(tmp_path)
    sums = dict(reversed(line.split("  ")) for line in (tmp_path / "SHA256SUMS").read_text().splitlines())
    assert sorted(sums) == sorted([*(w.name for w in wheels), *others])
    assert not [file for file in (tmp_path / "index").rglob("*") if file.name in (*others, of_this_machine)]
    assert all(sums[w.name] == hashlib.sha256(w.read_bytes()).hexdigest() for w in wheels)
    with served(tmp_path) as address:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--isolated",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            tmp_path / "site",
        ]
        run(*pip, "--index-url", address, "polyop", "polyop-cuda13")
    assert (tmp_path / "site" / "polyop_module.py").read_text() == f"version = '{VERSION}'\n"
    assert (tmp_path / "site" / "polyop_cuda13_module.py").exists()


def test_a_folder_without_files_for_pip_is_refused(tmp_path: Path) -> None:
    tiny_wheel(tmp_path, "polyop", "99.0.0")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "package_index.py", tmp_path, VERSION],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"expected wheels or a source distribution of version {VERSION}, got none" in done.stderr
    assert not (tmp_path / "index").exists()


class User:
    """Has a new environment, the index, and no checkout."""

    def __init__(self, folder: Path, address: str) -> None:
        kept = {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy") or k.startswith(("PIP_", "SSL_"))}
        self.folder, self.address = folder, address
        self.bin = folder / "venv" / "bin"
        self.variables = {
            **kept,
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
        }
        run(sys.executable, "-m", "venv", folder / "venv")

    def install(self, *what: str) -> None:
        pip = [self.bin / "python", "-m", "pip", "install", "--quiet", "--extra-index-url", self.address]
        run(*pip, *what, env=self.variables)

    def run(self, *words: str | Path) -> str:
        return run(*words, cwd=self.folder, env=self.variables)


@pytest.fixture(scope="module")
def user(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    folder = tmp_path_factory.mktemp("user")
    (folder / "dist").mkdir()
    # The index leaves out a wheel for this machine, which the fixture builds unless POLYOP_WHEEL names a portable one.
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    name = wheel.name.replace("-linux_", f"-manylinux_{glibc}_")
    (folder / "dist" / name).write_bytes(wheel.read_bytes())
    write_index(folder / "dist")
    with served(folder / "dist") as address:
        yield User(folder, address)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_first_minutes_of_a_user(user: User) -> None:
    """`pip install polyop`, then README's first example; then mmdet's detector with mmcv-lite, which finds boxes in a
    photo, becomes a file and runs."""
    user.install("polyop")
    assert VERSION in user.run("polyop", "--version")
    user.install("torch==2.13.0", "polyop[export]")
    block, said = re.search(
        r"^```python\n(.*?)^```\n+^```\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    ).groups()  # type: ignore[union-attr]
    assert user.run("python", "-c", block).split()[-1] == said.split()[-1]

    page = (ROOT / "docs" / "deploy-openmmlab.md").read_text()
    (packages,) = re.findall(r"^pip install (.*)$", page, re.MULTILINE)
    user.install(*shlex.split(packages))
    export, use, *_ = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    photo = ROOT / "docs" / "images" / "text.png"
    demo = f"from mmdet.apis import inference_detector\nprint('found', len(inference_detector(model, {str(photo)!r}).pred_instances))"
    assert int(re.search(r"^found (\d+)$", user.run("python", "-c", f"{export}\n{demo}"), re.MULTILINE)[1]) > 0
    user.run("python", "-c", use)
