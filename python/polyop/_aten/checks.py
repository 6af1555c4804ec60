# SPDX-License-Identifier: Apache-2.0
"""Conditions on values of tensors whose value does not matter to a program's results.

While PyTorch captures a program, it does not know them. One value only leads to an error, such as in `assert t.all()`
and in `if` with a `raise`: the program is captured for inputs that raise none. Or it leads to a shortcut.
"""

from __future__ import annotations

import dis
import functools
import sys
import traceback
from collections.abc import Sequence
from types import CodeType

_ENDS = ("RETURN", "YIELD", "FOR_ITER", "STORE_ATTR", "STORE_SUBSCR", "STORE_GLOBAL", "JUMP_ABSOLUTE")
"""What an error branch does not have: another end, or an effect that the program could depend on."""


_GENERAL = {
    ("effdet.anchors", "generate_detections"): True,  # pads the detections; those that are complete by no rows
    ("torch_geometric.utils._coalesce", "coalesce"): False,  # otherwise, no edge is twice
}
"""By module and function of a package: the value that leads to the computation for all inputs."""


def value_of_condition() -> bool | None:
    """Returns a value for the condition that the program is deciding, if the results are right for all inputs that
    raise no error. None otherwise.

    All frames but the one that decides a condition are at a call.
    """
    for frame, _ in traceback.walk_stack(sys._getframe(1)):
        is_condition, value = _value_without_error(frame.f_code, frame.f_lasti)
        if is_condition:
            return _GENERAL.get((frame.f_globals.get("__name__", ""), frame.f_code.co_name), value)
    return None


@functools.lru_cache(maxsize=256)
def _value_without_error(code: CodeType, offset: int) -> tuple[bool, bool | None]:
    """Returns whether the instruction decides a condition, and the value of that condition."""
    instructions = list(dis.get_instructions(code))
    positions = {instruction.offset: i for i, instruction in enumerate(instructions)}
    at = positions.get(offset, len(instructions))
    converts = [i.opname == "TO_BOOL" or i.argrepr.startswith("bool(") for i in instructions[at : at + 1]]
    jump = next(iter(instructions[at + any(converts) :]), None)
    if jump is None or not jump.opname.startswith("POP_JUMP") or not jump.opname.endswith(("IF_TRUE", "IF_FALSE")):
        return False, None
    jumps = jump.opname.endswith("IF_TRUE")  # for this value
    target, next_one = positions[jump.argval], positions[jump.offset] + 1
    of_true, of_false = (target, next_one) if jumps else (next_one, target)
    errors = _raises(instructions, positions, of_true), _raises(instructions, positions, of_false)
    return True, errors[1] if errors[0] != errors[1] else None


def _raises(instructions: Sequence[dis.Instruction], positions: dict[int, int], start: int) -> bool:
    """Says whether the program raises an error after this instruction, whatever it computes before."""
    pending, seen = [start], set[int]()
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        name = instructions[at].opname if at < len(instructions) else "RETURN"
        if name == "RAISE_VARARGS":
            continue
        if name.startswith(_ENDS) or "BACKWARD" in name:
            return False
        if "JUMP" in name:
            pending.append(positions[instructions[at].argval])
        if name != "JUMP_FORWARD":
            pending.append(at + 1)
    return True
