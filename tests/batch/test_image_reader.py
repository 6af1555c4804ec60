# SPDX-License-Identifier: Apache-2.0
"""The reader of images in Python, and how its images become tensors: kinds of files, EXIF, 16 bits, resizing, …."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from polyop import batch
from polyop.batch import images
from polyop.batch.errors import BatchError, SampleError
from polyop.batch.images import Format, ImageOptions, resized
from polyop.batch.interface import Tensor
from tests.support.machines import identity

NOISE = np.random.default_rng(0).integers(0, 256, (9, 14, 3), np.uint8)
SMOOTH = np.asarray(Image.fromarray(NOISE).resize((48, 32), Image.Resampling.BICUBIC))


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def test_formats_without_loss() -> None:
    image = Image.fromarray(NOISE)
    files = {
        "a.png": encoded(image, "PNG"),
        "a.bmp": encoded(image, "BMP"),
        "a.webp": encoded(image, "WEBP", lossless=True),
        "a.tif": encoded(image, "TIFF"),
        "packed.tiff": encoded(image, "TIFF", compression="tiff_lzw"),
    }
    for name, data in files.items():
        np.testing.assert_array_equal(images.read(data, name), NOISE, err_msg=name)
    gray = encoded(image.convert("1"), "TIFF", compression="group4")
    assert set(np.unique(images.read(gray, "fax.tif"))) == {0, 255}


def test_lossy_formats() -> None:
    ramp = np.stack(np.broadcast_arrays(np.arange(48) * 5, np.arange(32)[:, None] * 7, 90), -1).astype(np.uint8)
    for kind in ("JPEG", "WEBP"):
        got = images.read(encoded(Image.fromarray(ramp), kind, quality=95), kind).astype(int)
        assert np.abs(got - ramp).mean() < 4, kind


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(kind: str, orientation: int) -> None:
    """The image is as a viewer shows it: what Pillow's transpositions give."""
    names = ["FLIP_LEFT_RIGHT", "ROTATE_180", "FLIP_TOP_BOTTOM", "TRANSPOSE", "ROTATE_270", "TRANSVERSE", "ROTATE_90"]
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.fromarray(SMOOTH)
    plain, marked = (images.read(encoded(image, kind, **o), kind) for o in ({}, {"exif": exif}))
    want = Image.fromarray(plain)
    if orientation > 1:
        want = want.transpose(Image.Transpose[names[orientation - 2]])
    np.testing.assert_array_equal(marked, np.asarray(want))


def test_damaged_exif_has_no_orientation() -> None:
    data = encoded(Image.fromarray(SMOOTH), "JPEG", exif=b"Exif\0\0MM\0*\0\0\xff\xff")
    assert images.read(data, "a.jpg").shape == SMOOTH.shape


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_keep_the_higher_eight(kind: str) -> None:
    values = np.random.default_rng(1).integers(0, 1 << 16, (9, 14), np.uint16)
    got = images.read(encoded(Image.fromarray(values), kind), kind)
    np.testing.assert_array_equal(got, np.repeat((values >> 8)[..., None], 3, axis=2))


def test_cmyk() -> None:
    ink = np.zeros((16, 32, 4), np.uint8)
    ink[:, 16:] = (0, 255, 255, 0)  # red; white on the left
    got = images.read(encoded(Image.fromarray(ink, "CMYK"), "JPEG", quality=95), "a.jpg").astype(int)
    assert np.abs(got[:, :12] - 255).max() < 8
    assert np.abs(got[:, 20:] - (255, 0, 0)).max() < 8


def test_gamma_of_png() -> None:
    """A linear image gets sRGB's gamma, 1 / 2.2."""
    info = PngImagePlugin.PngInfo()
    info.add(b"gAMA", (100000).to_bytes(4, "big"))
    got = images.read(encoded(Image.fromarray(NOISE), "PNG", pnginfo=info), "a.png")
    want = np.floor(255 * (NOISE / 255) ** 0.45455 + 0.5)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "expected PNG, JPEG, BMP, WebP or TIFF"),
        (b"GIF89a", "expected PNG, JPEG, BMP, WebP or TIFF"),
        (encoded(Image.fromarray(NOISE), "TIFF")[:60], "is not a readable image"),
        (encoded(Image.fromarray(SMOOTH), "WEBP")[:40], "is not a readable image"),
        (encoded(Image.fromarray(NOISE[..., 0].astype(np.float32)), "TIFF"), "expected 8 or 16 bits per channel"),
        (encoded(Image.fromarray(NOISE[..., 0].astype(np.int32)), "TIFF"), "expected 8 or 16 bits per channel"),
    ],
    ids=["empty", "gif", "cut tiff", "cut webp", "float", "int32"],
)
def test_refused(data: bytes, said: str) -> None:
    with pytest.raises(SampleError, match=said):
        images.read(data, "x")


# ---- resizing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(9, 14), (18, 28), (5, 7), (1, 1), (31, 3)])
def test_resizing_is_bilinear(size: tuple[int, int]) -> None:
    """Against the formula in double precision, with half-pixel centres and the edge repeated."""

    def along(values: np.ndarray, extent: int) -> np.ndarray:
        at = (np.arange(extent) + 0.5) * len(values) / extent - 0.5
        low = np.floor(at).astype(int)
        a, b = (values[np.clip(i, 0, len(values) - 1)] for i in (low, low + 1))
        weight = (at - low)[:, None, None]
        return a * (1 - weight) + b * weight

    want = along(along(NOISE.astype(float), size[0]).transpose(1, 0, 2), size[1]).transpose(1, 0, 2)
    got = resized(NOISE, *size)
    assert (got.dtype, got.shape) == (np.uint8, (*size, 3))
    assert np.abs(got - want).max() < 0.7
    if size == NOISE.shape[:2]:
        np.testing.assert_array_equal(got, NOISE)


@pytest.mark.parametrize(
    ("size", "inside"), [((20, 28), (1, 19, 0, 28)), ((9, 40), (0, 9, 13, 27)), ((1, 1), (0, 1, 0, 1))]
)
def test_letterbox_keeps_the_aspect_ratio(size: tuple[int, int], inside: tuple[int, int, int, int]) -> None:
    top, bottom, left, right = inside
    got = resized(NOISE, *size, letterbox=True)
    assert got.shape == (*size, 3)
    np.testing.assert_array_equal(got[top:bottom, left:right], resized(NOISE, bottom - top, right - left))
    got[top:bottom, left:right] = 114
    assert (got == 114).all()


def tensor(shape: tuple[int | str, ...]) -> Tensor:
    return Tensor("x", np.dtype(np.float32), shape)


def test_options_make_an_input() -> None:
    options = ImageOptions(resize="model", mean=(0.5, 0.25, 0.0), std=(2.0,))
    got = images.to_input(SMOOTH, tensor((1, 3, 8, 10)), Format(), options, "a.png")
    want = (resized(SMOOTH, 8, 10) * (1 / 255) - (0.5, 0.25, 0)) / 2
    np.testing.assert_array_equal(got, want.transpose(2, 0, 1)[None].astype(np.float32))
    nhwc = images.to_input(
        SMOOTH, tensor(("n", 8, 10, 3)), Format("NHWC", "BGR"), ImageOptions(letterbox="model"), "a.png"
    )
    np.testing.assert_array_equal(
        nhwc[0, ..., ::-1], (resized(SMOOTH, 8, 10, letterbox=True) * (1 / 255)).astype(np.float32)
    )


def test_a_wrong_size_names_the_options() -> None:
    with pytest.raises(SampleError, match=r"expected float32\[1, 3, 8, 8\], got \[1, 3, 32, 48\] from a.png") as error:
        images.to_input(SMOOTH, tensor((1, 3, 8, 8)), Format(), ImageOptions(), "a.png")
    assert "--letterbox model" in error.value.hint
    with pytest.raises(SampleError, match="expected a fixed height and width to resize to"):
        images.to_input(SMOOTH, tensor((1, 3, "h", 8)), Format(), ImageOptions(resize="model"), "a.png")
    with pytest.raises(SampleError, match="expected 1 number, as the image has channels, got 3"):
        images.to_input(SMOOTH, tensor((1, 1, "h", "w")), Format(color="GRAY"), ImageOptions(mean=(1, 2, 3)), "a.png")


@pytest.mark.parametrize(
    "wrong", [{"resize": (1, 2), "letterbox": "model"}, {"resize": "larger"}, {"mean": (1.0, 2.0)}, {"std": (0.0,)}]
)
def test_wrong_options(wrong: dict[str, object]) -> None:
    with pytest.raises(BatchError, match="expected"):
        ImageOptions(**wrong)


def test_results_that_are_no_images() -> None:
    boxes = np.zeros((20, 4), np.float32)
    with pytest.raises(SampleError, match=r"output 'boxes': expected one image, got shape \[20, 4\]") as error:
        images.from_tensor(boxes, Format(), "boxes")
    assert ".npy" in error.value.hint
    assert images.from_tensor(boxes, Format(is_stated=True), "boxes").shape == (20, 4, 3)
    assert images.from_tensor(np.zeros((1, 3, 16, 16)), Format(), "image").shape == (16, 16, 3)
    assert images.format_of(tensor((1, 3, 8, 8)), {"polyop.image.x": "{}"}, ImageOptions()).is_stated
    assert not images.format_of(tensor((1, 3, 8, 8)), {}, ImageOptions()).is_stated


def test_a_batch_with_every_kind(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, kind in {"a.png": "PNG", "b.bmp": "BMP", "c.webp": "WEBP", "d.tif": "TIFF", "e.tiff": "TIFF"}.items():
        (tmp_path / "in" / name).write_bytes(encoded(Image.fromarray(NOISE), kind, lossless=True))
    model = identity(tmp_path / "m.onnx", ["n", 3, 8, 6])
    report = batch.run(model, [str(tmp_path / "in")], tmp_path / "out", letterbox="model", mean=[0.5], threads=1)
    assert (report.samples, report.failed) == (5, [])
    want = ((resized(NOISE, 8, 6, letterbox=True) * (1 / 255)) - 0.5).transpose(2, 0, 1)[None].astype(np.float32)
    for name in "abcde":
        np.testing.assert_array_equal(np.load(tmp_path / "out" / f"{name}.npz")["y"], want)
    report = batch.run(model, [str(tmp_path / "in")], tmp_path / "other", threads=1)
    assert len(report.failed) == 5
    assert "--resize model" in report.failed[0][1]
