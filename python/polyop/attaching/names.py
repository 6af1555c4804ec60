# SPDX-License-Identifier: Apache-2.0
"""Names of classes: COCO's, or those of a file."""

from __future__ import annotations

from pathlib import Path

from polyop.errors import FileError

_TEXT = (
    "person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,fire hydrant,stop sign,parking meter,bench,"
    "bird,cat,dog,horse,sheep,cow,elephant,bear,zebra,giraffe,backpack,umbrella,handbag,tie,suitcase,frisbee,skis,"
    "snowboard,sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,wine glass,cup,fork,"
    "knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,donut,cake,chair,couch,potted plant,bed,"
    "dining table,toilet,tv,laptop,mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,refrigerator,book,clock,"
    "vase,scissors,teddy bear,hair drier,toothbrush"
)
COCO = tuple(_TEXT.split(","))
"""The 80 classes of COCO's detection task."""


def read_names(source: str) -> tuple[str, ...]:
    """Returns COCO's names for "coco", else the lines of a text file. Raises OSError, or FileError if it has none."""
    if source == "coco":
        return COCO
    try:
        text = Path(source).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            f"'{source}': expected a text file with the name of a class in each line, got another"
        ) from error
    names = tuple(line.strip() for line in text.strip().splitlines())
    if not names:
        raise FileError(f"'{source}': expected the name of a class in each line, got an empty file")
    return names
