# SPDX-License-Identifier: Apache-2.0
"""Enlarges a held-out photo with the program and compares with bicubic, visually and by PSNR."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from images import HELD_OUT, enlarge, from_pixels, load, psnr, reduce, round_to_bytes
from panel import Panel
from PIL import Image
from rich.table import Table

if TYPE_CHECKING:
    from rich.console import Console

HERE = Path(__file__).parent
RUNS = (("srcnn3.onnx", 3.0), ("srcnn3.onnx", 2.5), ("srcnn2.onnx", 3.0), ("srcnn.onnx", 3.0))
CROP = (150, 60, 300, 180)  # left, top, right, bottom: the face, in pixels of the original


def to_image(image: np.ndarray) -> Image.Image:
    return Image.fromarray(np.round(image[0].clip(0, 1) * 255).astype(np.uint8).transpose(1, 2, 0))


def from_file(path: Path) -> np.ndarray:
    return from_pixels(np.asarray(Image.open(path).convert("RGB")))


def draw_enlargement(program, out: Path, console: Console) -> tuple[Image.Image, bool]:
    """Returns the side-by-side image, and whether SRCNN beat bicubic everywhere."""
    original = load(HELD_OUT)
    to_image(original).save(out / "original.png")
    table = Table(title=f"PSNR on {HELD_OUT}, which was not trained on (luminance, dB)", title_justify="left")
    for column in ("model", "scale", "bicubic", "SRCNN", "gain"):
        table.add_column(column, justify="left" if column == "model" else "right")
    better = True
    results: dict[float, tuple[Path, np.ndarray, float, float]] = {}
    for model, scale in RUNS:
        small = out / f"small_{scale:g}.png"
        to_image(reduce(original, scale)).save(small)
        large = out / f"{Path(model).stem}_x{scale:g}.png"
        factor = [] if model == "srcnn.onnx" else ["--set", f"factor=1,1,{scale:g},{scale:g}"]
        program.run(HERE / model, "-i", f"input={small}", "-o", f"output={large}", *factor)
        # The rival enlarges the same file and is rounded to 8 bits, like the program's output.
        bicubic = round_to_bytes(enlarge(from_file(small), scale))
        sharpened = from_file(large)
        border = round(scale) + 6
        a, b = psnr(bicubic, original, border), psnr(sharpened, original, border)
        results.setdefault(scale, (small, bicubic, a, b))
        better &= b > a
        table.add_row(
            model, f"{scale:g}", f"{a:.2f}", f"{b:.2f}", f"[green]{b - a:+.2f}[/]" if b > a else f"[red]{b - a:+.2f}[/]"
        )
    console.print(table)
    return _compare(out, original, *results[3.0]), better


def _compare(
    out: Path, original: np.ndarray, small: Path, bicubic: np.ndarray, before: float, after: float
) -> Image.Image:
    """Returns crops side by side; `before` and `after` are the PSNR of the whole image with bicubic and with SRCNN."""
    nearest = Image.open(small).resize(tuple(reversed(original.shape[-2:])), Image.Resampling.NEAREST)
    panel = Panel(
        "SRCNN as ONNX with a run-time scale (x3), node Just_A_Scope_Name::DynamicTRTResize; PSNR of the whole photo"
    )
    panel.add("Input, a third of the size", nearest.crop(CROP))
    panel.add(f"Bicubic, {before:.2f} dB", to_image(bicubic).crop(CROP))
    panel.add(f"SRCNN by polyop, {after:.2f} dB", Image.open(out / "srcnn3_x3.png").crop(CROP))
    panel.add("Original", to_image(original).crop(CROP))
    image = panel.draw(zoom=3, columns=4)
    image.save(out / "srcnn_compared.png")
    return image
