# SPDX-License-Identifier: Apache-2.0
"""Images side by side, each with its title."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from PIL import Image, ImageDraw, ImageFont

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
INK, PAPER, GREY = (28, 32, 38), (255, 255, 255), (96, 104, 114)
GAP = 14


def font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    """Returns DejaVu Sans, which matplotlib ships."""
    return ImageFont.truetype(str(FONTS / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf")), size)


class Panel:
    """A titled row (or grid) of images of one size."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.items: list[tuple[str, Image.Image]] = []

    def add(self, title: str, image: Image.Image) -> None:
        self.items.append((title, image.convert("RGB")))

    def draw(self, zoom: int = 1, columns: int = 3) -> Image.Image:
        width, height = (extent * zoom for extent in self.items[0][1].size)
        columns = min(columns, len(self.items))
        rows = -(-len(self.items) // columns)
        head, label = 50, 34
        page = Image.new("RGB", (columns * (width + GAP) + GAP, head + rows * (height + label + GAP)), PAPER)
        draw = ImageDraw.Draw(page)
        draw.text((GAP, 14), self.title, INK, font(19, bold=True))
        for index, (title, image) in enumerate(self.items):
            left = GAP + index % columns * (width + GAP)
            top = head + index // columns * (height + label + GAP)
            draw.text((left, top + 4), title, GREY, font(17))
            page.paste(image.resize((width, height), Image.Resampling.NEAREST), (left, top + label))
        return page
