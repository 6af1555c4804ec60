# SPDX-License-Identifier: Apache-2.0
"""Command lines: argparse with the program's error messages, and options that several commands have."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from polyop._commands.errors import suggestion, usage
from polyop._commands.numbers import parse_channels, parse_integer, parse_range, parse_real, parse_size

MAX_THREADS = 1024
OTHER_NAMES = {
    "--batch": "--max-batch",
    "--device": "--provider",
    "--for": "--runtime",
    "--plugins": "--ops",
    "--shapes": "--shape",
    "--to": "--runtime",
    "--tolerance": "--rtol",
}
"""Names that options had, and names that they have in other programs. cli/main.cc has those of the program."""
_REQUIRED = "the following arguments are required: "


class Parser(argparse.ArgumentParser):
    """Raises CommandError where argparse would exit, and names misspelt options."""

    def __init__(self, prog: str, summary: str, footer: str) -> None:
        super().__init__(
            prog=prog,
            description=summary,
            epilog=footer,
            allow_abbrev=False,
            add_help=False,
            exit_on_error=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._negative_number_matcher = re.compile(r"-[\d.]")  # values such as -1,1 are not options
        self.add_argument("-h", "--help", action="help", help="print this help and exit")
        self._words: list[str] = []

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Raises CommandError."""
        self._words = self._with_own_names(words)
        try:
            options, rest = self.parse_known_args(self._words)
        except argparse.ArgumentError as error:
            self._check_words()
            subject = (error.argument_name or "").split("/")[-1]
            raise usage(f"{subject}: {error.message}", f"see `{self.prog} --help`") from None
        if rest:
            self._check_words()
            raise usage(f"unexpected argument '{rest[0]}'", f"see `{self.prog} --help`")
        return options

    def _with_own_names(self, words: Sequence[str]) -> list[str]:
        """Replaces the other names of options that the command has, unless it has an option of that name, too."""
        known = {name for action in self._actions for name in action.option_strings}
        end = words.index("--") if "--" in words else len(words)
        result = []
        for word in words[:end]:
            name, equals, value = word.partition("=")
            own = OTHER_NAMES.get(name, "")
            result.append(f"{own}{equals}{value}" if own in known and name not in known else word)
        return [*result, *words[end:]]

    def error(self, message: str) -> NoReturn:
        self._check_words()
        if message.startswith(_REQUIRED):
            names = [name.split("/")[-1] for name in message.removeprefix(_REQUIRED).split(", ")]
            message = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} required"
        raise usage(message, f"see `{self.prog} --help`")

    def _check_words(self) -> None:
        """Raises CommandError that names a misspelt option, for which argparse has other messages."""
        known = [name for action in self._actions for name in action.option_strings]
        for word in self._words:
            if word == "--":
                return
            option = word.partition("=")[0] if word.startswith("--") else word[:2]
            if re.match(r"--|-[A-Za-z]", word) and option not in known:
                near = suggestion(option, (name for name in known if name.startswith("--")))
                raise usage(f"{self.prog} has no option '{option}'", f"{near}`{self.prog} --help` lists all")


def integer(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = parse_integer(text)
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"'{text}' is not an integer in [{low} - {high}]")
        return value

    return parse


def real(low: float, high: float = math.inf) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = parse_real(text)
        if value is None or not math.isfinite(value) or not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"'{text}' is not a number in [{low:g} - {high:g}]"
                if math.isfinite(high)
                else f"'{text}' is not a number in [{low:g} - …]"
            )
        return value

    return parse


def choice(*values: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in values:
            raise argparse.ArgumentTypeError(f"expected {', '.join(values[:-1])} or {values[-1]}, got '{text}'")
        return text

    return parse


def add_image_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--layout",
        metavar="LAYOUT",
        type=choice("NCHW", "NHWC"),
        help="images as NCHW or NHWC (default: from the model)",
    )
    parser.add_argument(
        "--range", metavar="BLACK,WHITE", help="values of images (default: the model's, else 0,1 or 0,255 for uint8)"
    )
    parser.add_argument(
        "--color", metavar="COLOR", type=choice("RGB", "BGR", "GRAY"), help="RGB, BGR or GRAY (default: from the model)"
    )
    parser.add_argument(
        "--resize", metavar="SIZE", help="scale images to HEIGHTxWIDTH, or to the extents of the model's input: model"
    )
    parser.add_argument(
        "--letterbox", metavar="SIZE", help="the same, keeping the aspect ratio: the rest is gray (114)"
    )
    parser.add_argument(
        "--mean", metavar="M[,M,M]", help="subtract from images, one number or one per channel of the tensor"
    )
    parser.add_argument("--std", metavar="S[,S,S]", help="divide images by, after --mean")


def image_options(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments of polyop.batch.images.ImageOptions. Raises CommandError."""
    if options.resize and options.letterbox:
        raise usage("--resize and --letterbox: expected one of them, got both")
    std = parse_channels("--std", options.std)
    if std and 0 in std:
        raise usage(f"--std: expected numbers other than 0, got '{options.std}'")
    return {
        "layout": options.layout,
        "range": parse_range(options.range) if options.range else None,
        "color": options.color,
        "resize": parse_size("--resize", options.resize),
        "letterbox": parse_size("--letterbox", options.letterbox),
        "mean": parse_channels("--mean", options.mean),
        "std": std,
    }


_GIGABYTE = 10**9


MEMORY_HELP = "how much memory the contents of input files may take (default: 0.27, and 64 times the files' sizes)"


def add_memory_option(parser: argparse.ArgumentParser, help: str = MEMORY_HELP) -> None:
    """Adds an option whose value is a number of bytes; 0: the default."""
    parser.add_argument(
        "--memory",
        metavar="GB",
        type=lambda text: int(real(0.001, 1e6)(text) * _GIGABYTE),
        default=0,
        help=help,
    )


def add_provider_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--provider",
        metavar="NAME[:key=value,…]",
        default="",
        help="run the model in this execution provider of the package onnxruntime: cpu, cuda, tensorrt, webgpu, openvino, "
        "…, polyop, or the path of a plugin library; cuda:1 is the second GPU",
    )


def add_library_option(parser: argparse.ArgumentParser, help: str = "a further library of custom operators") -> None:
    parser.add_argument("--ops", metavar="LIBRARY", action="append", default=[], help=help)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a report in JSON")
