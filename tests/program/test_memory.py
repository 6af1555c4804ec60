# SPDX-License-Identifier: Apache-2.0
"""Small files that claim large contents are refused before memory is taken."""

from __future__ import annotations

import io
import struct
import subprocess
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from polyop.attaching.errors import AttachError
from polyop.attaching.heads import Model
from polyop.batch import images, memory, reading
from polyop.batch.errors import SampleError

MB = 1 << 20


def claiming_png(side: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"x") + chunk(b"IEND", b"")


def zeros(count: int) -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(count, np.float32))
    return file.getvalue()


def archive(path: Path, **arrays: bytes) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in arrays.items():
            file.writestr(f"{name}.npy", data)
    return path.read_bytes()


@pytest.fixture
def polyop(program: str, tmp_path: Path):
    for name, shape in (("image", "1, 3, h, w"), ("row", "n")):
        text = f'<ir_version: 8, opset_import: ["": 17]> g (float[{shape}] x) => (float[{shape}] y) {{ y = Relu (x) }}'
        onnx.save(onnx.parser.parse_model(text), tmp_path / f"{name}.onnx")

    def run(words: str) -> tuple[int, str]:
        done = subprocess.run([program, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def test_the_program_refuses_claims(polyop, tmp_path: Path) -> None:
    (tmp_path / "claims.png").write_bytes(claiming_png(16384))
    code, said = polyop("run image.onnx -i claims.png")
    assert (code, "it claims 16384x16384 pixels" in said) == (3, True), said
    data = zeros(80 * MB // 4)
    archive(tmp_path / "a.npz", x=data)
    assert polyop("run row.onnx -i a.npz")[0] == 0  # 80 MB are within what any file may have
    code, said = polyop("run row.onnx -i a.npz --memory 0.05")
    assert (code, "expected contents of at most 50.0 MB, got 83.9 MB" in said) == (3, True), said
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", data)
        file.filelist *= 20  # entries of the same bytes
    code, said = polyop("run row.onnx -i bomb.npz")
    assert (code, "claims an impossible size" in said) == (3, True), said


def test_the_commands_in_python_refuse_claims(polyop, tmp_path: Path) -> None:
    (tmp_path / "claims.png").write_bytes(claiming_png(16384))
    code, said = polyop("optimize image.onnx -o o.onnx -i claims.png")
    assert (code, "expected contents of at most 268.4 MB, got 805.3 MB" in said) == (3, True), said
    code, said = polyop("batch image.onnx -i claims.png -o out")
    assert (code, "--memory GB" in said) == (1, True), said


def test_limits_of_the_readers(tmp_path: Path) -> None:
    with pytest.raises(SampleError, match=r"expected contents of at most 268.4 MB, got 805.3 MB"):
        images.read(claiming_png(16384), "a.png")
    data = archive(tmp_path / "a.npz", x=zeros(8 * MB), y=zeros(8 * MB))
    assert list(reading.read_npz(data, "a.npz", ["x"], memory.Memory(40 * MB))) == ["x"]
    with pytest.raises(SampleError, match=r"expected contents of at most 41.9 MB, got 67.1 MB"):
        reading.read_npz(data, "a.npz", ["x", "y"], memory.Memory(40 * MB))
    header = zeros(4)[:128].replace(b"(4,), }         ", b"(4000000000,), }")
    with pytest.raises(SampleError, match="expected 16000000000 bytes of elements, got 16"):
        reading.read_npy(header + bytes(16), "a.npy")


def test_a_sparse_member_of_a_tar_file(tmp_path: Path) -> None:
    member = tarfile.TarInfo("a.npy")
    member.size = 512
    member.pax_headers = {"GNU.sparse.map": "0,512", "GNU.sparse.size": str(1 << 40), "GNU.sparse.name": "a.npy"}
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as file:
        file.addfile(member, io.BytesIO(bytes(512)))
    with pytest.raises(SampleError, match=r"'a.npy': expected a file's content, got a sparse file"):
        list(reading._of_tar(tmp_path / "a.tar", lambda members, key: {}))


def test_numbers_of_classes() -> None:
    model = Model.__new__(Model)
    object.__setattr__(model, "metadata", {"names": "{300000000: 'a'}"})
    with pytest.raises(AttachError, match="expected numbers of classes up to 100000, got 300000000"):
        model.names()
