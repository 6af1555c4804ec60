# SPDX-License-Identifier: Apache-2.0
"""The demonstration: a photo enlarged by SRCNN at run-time scales, and NMS compared with soft-NMS on a photo.

Everything runs through the program `polyop`; images and numbers are written to build/demo/.

python models/demo.py [--polyop PROGRAM] [--out FOLDER] [--readme]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
from rich.console import Console

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "srcnn"), str(HERE / "nms")]

from boxes import draw_suppression  # noqa: E402
from enlarge import draw_enlargement  # noqa: E402

ROOT = HERE.parent


class Program:
    """The program `polyop`, which prints its own report."""

    def __init__(self, path: Path, console: Console) -> None:
        self.path, self.console = path, console

    def run(self, model: Path, *arguments: str) -> None:
        """Runs `polyop run`; an error ends the demonstration."""
        shown = " ".join(_short(a) for a in ("polyop", "run", str(model), *arguments))
        self.console.print(f"[bold cyan]$[/] {shown}", highlight=False, soft_wrap=True)
        result = subprocess.run([self.path, "run", model, *arguments], check=False)
        if result.returncode != 0:
            sys.exit(f"polyop ended with exit code {result.returncode}")


def _short(argument: str) -> str:
    return argument.replace(f"{ROOT}/", "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--polyop", type=Path, default=Path(sys.executable).parent / "polyop", help="the program")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "demo", help="where images go")
    parser.add_argument("--readme", action="store_true", help="also write the README's image")
    arguments = parser.parse_args()
    console = Console()
    arguments.out.mkdir(parents=True, exist_ok=True)
    program = Program(arguments.polyop, console)

    console.rule("[bold]A photo enlarged: SRCNN with a run-time scale")
    panel, better = draw_enlargement(program, arguments.out, console)
    console.rule("[bold]Overlapping boxes: NMS and soft-NMS")
    boxes = draw_suppression(program, arguments.out, console)
    if arguments.readme:
        target = ROOT / "docs" / "images"
        target.mkdir(parents=True, exist_ok=True)
        for name, image in (("srcnn.png", panel), ("nms.png", boxes)):
            image.save(target / name, optimize=True)
    console.rule("[bold]Files")
    for path in sorted(arguments.out.iterdir()):
        console.print(f"  {_short(str(path))}  {path.stat().st_size / 1024:.0f} KiB", highlight=False)
    if not better:
        sys.exit("SRCNN did not beat bicubic: something is wrong with the model or the run.")


if __name__ == "__main__":
    np.set_printoptions(precision=3, suppress=True)
    main()
