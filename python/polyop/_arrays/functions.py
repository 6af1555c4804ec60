# SPDX-License-Identifier: Apache-2.0
"""The operators as Python functions, which have the same parameters and errors for every framework's tensors.

A function's parameters are those of its row in signatures.py, or else the inputs and attributes of the definition. A
framework passes define_all() the call of an operator with all inputs and all attributes.
"""

from __future__ import annotations

import ast
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from polyop._arrays import composites as _composites
from polyop._arrays.composites import Arrays
from polyop._arrays.signatures import FUNCTIONS, JOINED, NUMBERS, REQUIRED, Row

_REQUIRED: Any = inspect.Parameter.empty
_INT64 = range(-(2**63), 2**63)


class Parameter(NamedTuple):
    name: str
    sources: tuple[str, ...]
    """The input or the attributes of the definition: two if they are joined."""
    default: Any
    """inspect.Parameter.empty if the caller must pass it."""
    kind: str
    """"input" or "variadic", the type of an attribute, "flag" for True or False, or "pair" for joined attributes."""
    meaning: str = ""


class Function(NamedTuple):
    name: str
    record: Mapping[str, Any]
    """The operator's record in the catalogue; the first operator's for a composite."""
    parameters: tuple[Parameter, ...] = ()
    row: Row | None = None
    composite: Callable[..., Any] | None = None

    @property
    def is_call(self) -> bool:
        """Whether the function returns what an operator returns."""
        return self.composite is None or next(iter(inspect.signature(self.composite).parameters)) == "call"


# ---- parameters ------------------------------------------------------------------------------------


def default_of(attribute: Mapping[str, Any]) -> Any:
    """Returns an attribute's default as the definition writes it: 0.3, and neither float32's next number nor None, as
    JSON has no infinities."""
    value, kind = attribute["default"], attribute["type"]
    return float(attribute["default_text"]) if value is None or kind == "float" else value


def _is_flag(attribute: Mapping[str, Any]) -> bool:
    return (
        attribute["type"] == "int"
        and not attribute["choices"]
        and attribute["default"] in (0, 1)
        and attribute["range"] in ("", "[0, 1]")
        and attribute["name"] not in NUMBERS
    )


def _default(attribute: Mapping[str, Any]) -> Any:
    """Returns the default that a Python caller sees: a text for a choice, a number for equal numbers, True or False."""
    value = default_of(attribute)
    if attribute["required"]:
        return _REQUIRED
    if attribute["choices"] and isinstance(value, int):
        return attribute["choices"][value]
    if isinstance(value, list):
        value = tuple(value)
        return value[0] if len(set(value)) == 1 else value
    return bool(value) if _is_flag(attribute) else value


def _parameters(record: Mapping[str, Any], row: Row) -> tuple[Parameter, ...]:
    found: dict[str, Parameter] = {}
    for given in record["inputs"]:
        kind = "variadic" if given["variadic"] else "input"
        default = None if given["optional"] else _REQUIRED
        found[given["name"]] = Parameter(given["name"], (given["name"],), default, kind)
    for attribute in record["attributes"]:
        name, meaning = attribute["name"], attribute["meaning"]
        joined = next((to for pattern, to in JOINED if pattern.fullmatch(name)), None)
        if name in row.presets:
            continue
        if joined in found:
            (first,), default = found[joined].sources, found[joined].default
            if default not in (_REQUIRED, _default(attribute)):
                default = (default, _default(attribute))
            meaning = f"(height, width), or one number for both: {found[joined].meaning}; {meaning}"
            found[joined] = Parameter(joined, (first, name), default, "pair", meaning)
        else:
            kind = "flag" if _is_flag(attribute) else attribute["type"]
            default = _REQUIRED if joined in REQUIRED else _default(attribute)
            found[joined or name] = Parameter(joined or name, (name,), default, kind, meaning)
    named = []
    for text in filter(None, row.parameters.split(", ")):
        name, _, default = text.rstrip("!").partition("=")
        name, _, source = name.partition("<")
        parameter = found.pop(source or name)._replace(name=name)
        if text.endswith("!"):
            parameter = parameter._replace(default=_REQUIRED)
        named.append(parameter._replace(default=ast.literal_eval(default)) if default else parameter)
    # An input of the definition comes before its attributes, and what the caller must pass before what has a default.
    return (*named, *sorted(found.values(), key=lambda p: p.default is not _REQUIRED))


def functions(records: Mapping[str, Mapping[str, Any]], composites: bool = True) -> dict[str, Function]:
    """Returns the functions of the operators, given the catalogue's records by the operators' names. Without
    `composites`, an operator's own function is in place of a composite of its name."""
    found = {}
    rows = {**{name: Row(name) for name in records}, **FUNCTIONS}
    for name, row in rows.items():
        if row.operator in records:
            found[name] = Function(name, records[row.operator], _parameters(records[row.operator], row), row)
    for name, needed in _composites.NEEDS.items() if composites else ():
        if all(op in records for op in needed):
            found[name] = Function(name, records[needed[0]], composite=getattr(_composites, name))
        else:
            found.pop(name, None)
    return dict(sorted(found.items()))


def signature_of(function: Function) -> inspect.Signature:
    """Returns the signature without annotations, which is the same for every framework."""
    if function.composite is not None:
        given = list(inspect.signature(function.composite).parameters.values())[1:]
        return inspect.Signature([p.replace(annotation=_REQUIRED) for p in given])
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(p.name, either, default=p.default) for p in function.parameters])


# ---- values ----------------------------------------------------------------------------------------


def numbers_of(name: str, kind: str, value: Any) -> list[Any]:
    """Returns the numbers of an attribute's value. Raises ValueError if it is not of the kind."""
    try:
        values = list(value) if kind.endswith("s") else [value]
        if kind in ("float", "floats") and not any(isinstance(v, str) for v in (value, *values)):
            return [float(v) for v in values]
        if kind in ("int", "ints"):
            integers = [operator.index(v) for v in values]
            if all(v in _INT64 for v in integers):
                return integers
    except (OverflowError, TypeError, ValueError):
        pass
    kinds = {"int": "an integer of 64 bits", "float": "a number", "ints": "integers of 64 bits", "floats": "numbers"}
    raise ValueError(f"attribute '{name}': expected {kinds.get(kind, 'a text')}, got {value!r}") from None


def is_text(attribute: Mapping[str, Any], value: Any) -> bool:
    """Returns whether the value is a text for an attribute that has texts, perhaps by its choices."""
    return isinstance(value, str) and bool(attribute["choices"] or attribute["type"] == "string")


def _values(value: Any) -> Any:
    """Returns the items of a sequence or an array of one dimension as a tuple, and other values as they are."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(value)
    return tuple(value.tolist()) if hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1 else value


def _numbers(value: Any, count: int) -> Any:
    """Returns a tuple: `count` times the value, if it is a single one."""
    values = _values(value)
    return values if isinstance(values, tuple) or value is None or isinstance(value, str) else (values,) * count


def _count(attribute: Mapping[str, Any]) -> int:
    """Returns the number of equal values that a single one stands for."""
    return len(attribute["default"]) if len(set(attribute["default"])) == 1 else 1


def _required(op: str, name: str, value: Any) -> Any:
    if value is None:
        raise ValueError(f"polyop::{op}: attribute '{name}': expected a value, got None")
    return value


def _choice(op: str, name: str, choices: Sequence[str], value: Any) -> Any:
    """Returns a text, also for the number by which nodes write it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and value in range(len(choices)):
        return choices[value]
    raise ValueError(f"polyop::{op}: attribute '{name}': expected one of {', '.join(choices)}, got {value!r}")


def _pair(op: str, name: str, value: Any) -> tuple[Any, Any]:
    """Returns a height and a width."""
    values = _values(value)
    if not isinstance(values, tuple):
        return values, values
    if len(values) != 2:
        raise ValueError(f"polyop::{op}: '{name}': expected a number or (height, width), got {value!r}")
    return values


def _flag(value: Any) -> Any:
    """Returns 0 or 1 for Python's and NumPy's False and True, and other values as they are."""
    if value is True or value is False or type(value).__name__ in ("bool", "bool_"):
        return int(value)
    return tuple(_flag(item) for item in value) if isinstance(value, tuple) else value


def _unless(value: Any, default: float) -> Any:
    """Returns None, which stands for the default, in place of it. Some runtimes cannot be passed an infinite one."""
    return None if isinstance(value, float) and value == default else value


def _named(error: Exception, names: Mapping[str, str]) -> None:
    """Writes the parameters' names in place of the definition's in an error's message."""
    if error.args and isinstance(error.args[0], str):
        known = "|".join(map(re.escape, names))
        text = re.sub(rf"(?<=')({known})(?=')|(?<=\()({known})(?=\))", lambda match: names[match[0]], error.args[0])
        error.args = (text, *error.args[1:])


# ---- functions -------------------------------------------------------------------------------------


def define_all(
    records: Mapping[str, Mapping[str, Any]],
    call: Callable[..., Any],
    arrays: Arrays,
    module: str,
    keywords: Sequence[str] = (),
) -> dict[str, Callable[..., Any]]:
    """Returns the functions of a framework by their names.

    They call call(operator, inputs, attributes, outputs, …) with all inputs and the values of all attributes, in the
    definition's order, None for its default; the number of outputs to return, None for all; and the values of more
    `keywords`, which are None by default. `arrays` are the framework's arrays.
    """

    def by_name(
        op: str, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int | None = None, **more: Any
    ) -> Any:
        values = tuple(
            _numbers(attributes.get(a["name"]), _count(a)) if a["type"].endswith("s") else attributes.get(a["name"])
            for a in records[op]["attributes"]
        )
        return call(op, inputs, values, outputs, **more)

    arrays.by_name = by_name
    return {
        name: _define(function, call if function.composite is None else by_name, arrays, module, keywords)
        for name, function in functions(records).items()
    }


def _define(
    function: Function, call: Callable[..., Any], arrays: Arrays, module: str, keywords: Sequence[str]
) -> Callable[..., Any]:
    """Returns the function, whose source is compiled: to bind arguments by inspect is slower than a small kernel."""
    name, op = function.name, function.record["name"]
    uses: dict[str, Any] = {
        "_call": call, "_choice": _choice, "_composite": function.composite, "_flag": _flag, "_named": _named,
        "_numbers": _numbers, "_pair": _pair, "_partial": partial, "_required": _required, "_unless": _unless,
        "inf": math.inf,
    }  # fmt: skip
    keywords = keywords if function.is_call else ()
    signature = signature_of(function)
    parameters = [str(parameter) for parameter in signature.parameters.values()]
    parameters += ["*", *(f"{k}=None" for k in keywords)] if keywords else []
    more = "".join(f", {k}={k}" for k in keywords)
    body = []
    if function.composite is not None:
        uses["_first"] = arrays
        first = "_first" if not function.is_call else f"_partial(_call{more})" if more else "_call"
        body = [f"return _composite({', '.join([first, *signature.parameters])})"]
    else:
        assert function.row is not None
        pairs = [p for p in function.parameters if p.kind == "pair"]
        for p in pairs:
            value = f"_required({op!r}, {p.name!r}, {p.name})" if p.default is _REQUIRED else p.name
            body.append(f"{', '.join('_' + s for s in p.sources)} = _pair({op!r}, {p.name!r}, {value})")
        inputs = {p.sources[0]: p.name for p in function.parameters if p.kind in ("input", "variadic")}
        passed = "".join(inputs[given["name"]] + ", " for given in function.record["inputs"])
        values = "".join(_expression(function, attribute) + ", " for attribute in function.record["attributes"])
        result = f"_call({op!r}, ({passed}), ({values}), {function.row.outputs}{more})"
        names = {source: p.name for p in function.parameters for source in p.sources if source != p.name}
        uses["_names"] = names
        renamed = ["try:", f"    return {result}", "except (RuntimeError, TypeError, ValueError) as _error:"]
        body += [*renamed, "    _named(_error, _names)", "    raise"] if names else [f"return {result}"]
    # They are variables of a function around it: torch.compile looks for global ones in the module itself.
    lines = [f"def _define({', '.join(uses)}):", f"  def {name}({', '.join(parameters)}):"]
    lines += [*(f"    {line}" for line in body), f"  return {name}"]
    scope: dict[str, Any] = {"__name__": module}
    exec(compile("\n".join(lines), f"<polyop.{name}>", "exec"), scope)
    defined = scope["_define"](**uses)
    defined.__qualname__ = name
    defined.__doc__ = documentation(function)
    return defined


def _expression(function: Function, attribute: Mapping[str, Any]) -> str:
    """Returns the source of an attribute's value."""
    assert function.row is not None
    name = attribute["name"]
    if name in function.row.presets:
        return repr(function.row.presets[name])
    parameter = next(p for p in function.parameters if name in p.sources)
    if parameter.kind == "pair":
        return f"_{name}"
    op, default, value = function.record["name"], default_of(attribute), parameter.name
    if parameter.default is _REQUIRED:
        value = f"_required({op!r}, {parameter.name!r}, {value})"
    if parameter.kind == "flag":
        return f"_flag({value})"
    if attribute["choices"]:
        return f"_choice({op!r}, {parameter.name!r}, {tuple(attribute['choices'])}, {value})"
    if isinstance(default, list):
        value = f"_numbers({value}, {_count(attribute)})"
        return f"_flag({value})" if isinstance(parameter.default, bool) else value
    if isinstance(default, float) and math.isinf(default):
        return f"_unless({value}, {default})"
    return value


def documentation(function: Function) -> str:
    if function.composite is not None:
        return inspect.cleandoc(function.composite.__doc__ or "")
    record = function.record
    renamed = {p.sources[0]: p.name for p in function.parameters if p.kind in ("input", "variadic")}
    signatures = (
        re.sub(r"\b(\w+)(?=\??: )", lambda match: renamed.get(match[1], match[1]), text)
        for text in record["signatures"]
    )
    attributes = [p for p in function.parameters if p.meaning]
    parts = [record["summary"], record["semantics"], "\n".join(f"    {text}" for text in signatures)]
    if attributes:
        parts.append("Attributes:\n" + "\n".join(f"    {p.name}: {_meaning(p)}" for p in attributes))
    return "\n\n".join((*(part for part in parts if part), f"Source: {record['source']}"))


def _meaning(parameter: Parameter) -> str:
    if parameter.kind != "flag":
        return parameter.meaning
    return re.sub(r"\b([01]|true|false): ", lambda m: f"{m[1] in ('1', 'true')}: ", parameter.meaning)


def names(records: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Returns the names of the functions of a catalogue's operators."""
    return frozenset(functions({r["name"]: r for r in records if not r.get("gradient_of")}))
