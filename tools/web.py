#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the npm package of a build for WebAssembly into its folder `package`: its modules, sdk/web/, and JavaScript
and TypeScript from the operators' definitions and from the heads of `polyop attach`.

Functions have the names, the parameters and the defaults of Python's; those of several operators (composites.py) are
left out. Required inputs are arguments, and all else is an object of options.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from polyop import __version__
from polyop._arrays.calls import operators
from polyop._arrays.functions import Function, Parameter, default_of, functions
from polyop.attaching.heads import HEADS

ROOT = Path(__file__).parents[1]
_REQUIRED = inspect.Parameter.empty
NOTE = "// Written by tools/web.py from the definitions.\n"
TYPES = {
    "input": "Input", "int": "number | bigint", "float": "number", "string": "string", "flag": "boolean",
    "ints": "Integers | number", "floats": "Numbers | number", "pair": "number | [height: number, width: number]",
}  # fmt: skip
KINDS = {"flag": "int"}


def camel(name: str) -> str:
    first, *rest = re.split("_+", name.rstrip("_"))
    return first + "".join(part.capitalize() for part in rest)


def literal(value: Any) -> str:
    """Returns the value as JavaScript. Python writes infinities as JavaScript does, and not as JSON."""
    return json.dumps(value)


def chosen(names: set[str]) -> list[Function]:
    records = {name: record for name, record in operators().items() if name in names}
    return list(functions(records, composites=False).values())


def _width(function: Function, source: str) -> int:
    """Returns the number of columns of an input that is rows of a fixed width in the first signature, or 0."""
    first = function.record["signatures"][0]
    found = re.search(rf"(?<!\w){re.escape(source)}\??: \w+\[[^,\]]+, (\d+)\]", first)
    return int(found[1]) if found else 0


def _is_optional(function: Function, parameter: Parameter) -> bool:
    return any(i["optional"] for i in function.record["inputs"] if i["name"] == parameter.sources[0])


def _option(function: Function, parameter: Parameter) -> dict[str, Any]:
    source = parameter.sources[0]
    option: dict[str, Any] = {"sources": parameter.sources, "kind": KINDS.get(parameter.kind, parameter.kind)}
    if parameter.kind == "input":
        return option | ({"width": width} if (width := _width(function, source)) else {})
    record = next(a for a in function.record["attributes"] if a["name"] == source)
    if record["choices"]:
        option |= {"choices": record["choices"]}
    if parameter.kind in ("ints", "floats") and record["default"] and len(set(record["default"])) == 1:
        option |= {"count": len(record["default"])}
    if parameter.default is _REQUIRED:
        return option | {"required": True}
    values = [default_of(a) for a in function.record["attributes"] if a["name"] in parameter.sources]
    own = (
        parameter.default
        if parameter.kind != "pair" or isinstance(parameter.default, tuple)
        else ((parameter.default,) * 2)
    )
    if record["choices"] and isinstance(own, str) and isinstance(values[0], int):
        own = record["choices"].index(own)
    known = values[0] if parameter.kind != "pair" else tuple(values)
    if isinstance(known, list):
        known = known[0] if len(set(known)) == 1 else tuple(known)
    return option if own is None or own == known else option | {"default": parameter.default}


def entry(function: Function) -> str:
    """Returns the function's line of operators.js."""
    record, row = function.record, function.row
    assert row is not None
    inputs, options = [], {}
    for parameter in function.parameters:
        if parameter.kind in ("input", "variadic") and parameter.default is _REQUIRED:
            source = parameter.sources[0]
            described: dict[str, Any] = {"name": camel(parameter.name), "source": source}
            described |= {"variadic": True} if parameter.kind == "variadic" else {}
            described |= {"width": width} if (width := _width(function, source)) else {}
            described |= {"optional": True} if _is_optional(function, parameter) else {}
            inputs.append(described)
        else:
            options[camel(parameter.name)] = _option(function, parameter)
    presets = [
        [name, next(a["type"] for a in record["attributes"] if a["name"] == name), value]
        for name, value in row.presets.items()
    ]
    presets = [[name, "string" if isinstance(value, str) else kind, value] for name, kind, value in presets]
    result = {
        "op": record["name"],
        "inputs": inputs,
        "options": options,
        "order": [i["name"] for i in record["inputs"]],
        "presets": presets,
        "outputs": row.outputs or len(record["outputs"]),
    }
    return f"  {camel(function.name)}: {literal(result)},"


def comment(indent: str, text: str) -> str:
    return f"{indent}/** {' '.join(text.replace('*/', '* /').split())} */\n"


def declaration(function: Function) -> str:
    """Returns the function's lines of polyop.d.ts."""
    record, row = function.record, function.row
    assert row is not None
    arguments, options = [], []
    for parameter in function.parameters:
        name, required = camel(parameter.name), parameter.default is _REQUIRED
        if required and parameter.kind in ("input", "variadic"):
            kind = "Input[]" if parameter.kind == "variadic" else "Input"
            arguments.append(f"{name}: {kind}{' | null' if _is_optional(function, parameter) else ''}")
            continue
        choices = next((a["choices"] for a in record["attributes"] if a["name"] == parameter.sources[0]), [])
        kind = " | ".join(map(json.dumps, choices)) or TYPES[parameter.kind]
        default = "" if required or parameter.default is None else f" Default: {literal(parameter.default)}."
        about = comment("    ", f"{parameter.meaning or 'optional input'}.{default}")
        options.append(f"{about}    {name}{'' if required else '?'}: {kind};\n")
    must = any(p.default is _REQUIRED for p in function.parameters if p.kind not in ("input", "variadic"))
    if options:
        arguments.append(f"options{'' if must else '?'}: {{\n{''.join(options)}  }}")
    outputs = record["outputs"][: row.outputs]
    result = "Tensor" if len(outputs) == 1 else f"[{', '.join(camel(o['name']) + ': Tensor' for o in outputs)}]"
    result = result if not any(o["optional"] for o in outputs) else "Tensor[]"
    return f"{comment('  ', record['summary'])}  {camel(function.name)}({', '.join(arguments)}): {result};\n"


def heads() -> str:
    lines = []
    for name, head in HEADS.items():
        values = {camel(key): value for key, value in asdict(head).items()}
        if head.expects.startswith("as "):
            values["expects"] = HEADS[head.expects[3:]].expects
        lines.append(f"  {name}: {literal(values)},")
    return f"{NOTE}export const HEADS = {{\n" + "\n".join(lines) + "\n};\n"


def write_scripts(package: Path, names: set[str]) -> Path:
    """Writes the package of these operators without its modules, and returns its folder."""
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "sdk" / "web", package)
    shutil.copy(ROOT / "LICENSE", package)
    found = chosen(names)
    lines = "\n".join(map(entry, found))
    (package / "operators.js").write_text(f"{NOTE}export const FUNCTIONS = {{\n{lines}\n}};\n")
    (package / "heads.js").write_text(heads())
    declarations = package / "polyop.d.ts"
    text = declarations.read_text()
    text = text.replace("  // operators\n", "".join(map(declaration, found)))
    declarations.write_text(text.replace("'head names'", " | ".join(f"'{name}'" for name in HEADS)))
    (package / "package.json").write_text(
        (package / "package.json").read_text().replace('"version": "0.0.0"', f'"version": "{__version__}"')
    )
    return package


def write(build: Path) -> Path:
    """Writes the package of a build tree, and returns its folder."""
    names = set(re.findall(r'\{"(\w+)", "\w+"\},', (build / "libraries" / "polyop.cc").read_text()))
    package = write_scripts(build / "package", names)
    for module in build.glob("bin/*.wasm"):
        shutil.copy(module, package)
    return package


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, nargs="?", default=ROOT / "build" / "wasm", help="the build tree")
    print(write(parser.parse_args().build))
