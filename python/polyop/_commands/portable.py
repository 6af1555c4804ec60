# SPDX-License-Identifier: Apache-2.0
"""`polyop portable`: polyop.portable is the implementation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from polyop._commands import terminal
from polyop._commands.arguments import add_json_option
from polyop._commands.errors import CommandError, ExitCode, suggestion, usage
from polyop._commands.models import check_attributes, check_model, check_output, type_of, without_provider

if TYPE_CHECKING:
    from onnx import ModelProto

SUMMARY = "Give polyop's nodes functions of standard operators"
NEEDS = "pip install 'polyop[export]'"
FOOTER = """\
A node that has a function runs in any ONNX Runtime: by polyop's kernel if polyop's library is registered, else by the
function. The command needs torch, onnx and onnx-ir: pip install 'polyop[export]'. `polyop ops NAME` explains why an operator has no function. If a
node got no function, the file is written nevertheless and the exit code is 4.

Examples:
  polyop portable old.onnx -o new.onnx
  polyop portable old.onnx -o plain.onnx --inline
  polyop verify new.onnx --against functions"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", help="an ONNX file, of any exporter")
    add("-o", "--output", required=True, metavar="FILE", help="the portable file")
    add(
        "--inline",
        action="store_true",
        help="replace polyop's nodes by the nodes of their functions, for runtimes without support of functions",
    )
    add(
        "--only",
        action="extend",
        type=lambda text: text.split(","),
        metavar="DOMAIN::TYPE,…",
        help="change only these nodes",
    )
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    from polyop.portable import convert_file

    model = check_model(options.model)
    check_attributes(model)
    check_output(options.model, options.output)
    if options.only is not None:
        _check_only(options, model)
    try:
        report = convert_file(options.model, options.output, inlined=options.inline, only=options.only)
    except ValueError as error:
        if hasattr(error, "hint"):
            raise
        raise CommandError(ExitCode.FAILED, f"{options.model}: {error}") from error
    report["nodes"] += _unknown(model, options.only)
    records: list[dict[str, Any]] = report["nodes"]
    if options.json:
        terminal.print_json(report)
    else:
        _print(options, records, report)
    return ExitCode.OK if all(record["given"] for record in records) else ExitCode.NOT_PROVIDED


def _unknown(model: ModelProto, only: list[str] | None) -> list[dict[str, Any]]:
    """Returns records of the nodes that nobody provides: no runtime loads the file."""
    return [
        {
            "node": node.name or next(iter(node.output), ""),
            "name": type_of(node),
            "given": False,
            "why": "nobody provides it",
        }
        for node in without_provider(model)
        if only is None or type_of(node) in only
    ]


def _check_only(options: argparse.Namespace, model: Any) -> None:
    """Raises CommandError if the model has no node of a name in --only."""
    from polyop._onnx.catalogue import is_node
    from polyop._onnx.graph import nodes_of

    names = sorted(
        {
            f"{node.domain}::{node.op_type}" if node.domain else node.op_type
            for node in nodes_of(model)
            if node.domain or is_node(node.domain, node.op_type)
        }
    )
    for name in options.only:
        if name.removeprefix("::") not in names:
            hint = suggestion(name, names).rstrip() or f"it has {', '.join(names) or 'none'}"
            raise usage(f"--only {name}: {options.model} has no such node", hint)


def _print(options: argparse.Namespace, records: list[dict[str, Any]], report: dict[str, Any]) -> None:
    """Prints a row for all nodes of a name, which share their function."""
    rows = []
    for name in sorted({record["name"] for record in records}):
        same = [record for record in records if record["name"] == name]
        given = terminal.green("yes") if same[0]["given"] else terminal.red("no")
        rows.append([name, str(len(same)), given, same[0]["why"] or "-"])
    if rows:
        print(terminal.table(["operator", "count", "replaced" if options.inline else "function", "note"], rows))
    else:
        print("No node is polyop's.")
    if report["opset_before"] != report["opset"]:
        print(f"  opset {report['opset_before']} became {report['opset']}, which functions need")
    print(f"{terminal.green('wrote')} {options.output}")
