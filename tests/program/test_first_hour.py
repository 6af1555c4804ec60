# SPDX-License-Identifier: Apache-2.0
"""tools/first_hour.sh, which makes the usual mistakes: every command ends with an exit code of `polyop --help`, and
none with a traceback.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.processes import ROOT

EXPECTED = {
    "polyop optimize empty.onnx": 3,
    "polyop triton lost.onnx": 3,
    "polyop portable lost.onnx": 3,
    "polyop optimize unknown.onnx": 4,
    "polyop triton unknown.onnx": 4,
    "polyop optimize no_such_standard.onnx": 4,
    "polyop convert misspelt.onnx": 3,
    "polyop portable unknown.onnx": 4,
    "polyop portable misspelt.onnx": 3,
    "polyop portable head.onnx -o head.onnx": 2,
    "polyop optimize outside.onnx -o new/folder/fast.onnx": 0,
    "polyop batch fixed.onnx -i mixed -o fixed_out": 1,
    "timeout --preserve-status --signal INT 2 polyop optimize": 130,
}


@pytest.mark.slow
def test_every_mistake_has_an_exit_code_and_no_traceback() -> None:
    done = subprocess.run([ROOT / "tools" / "first_hour.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    blocks = re.findall(r"^```\n\$ (.*?)\n(.*?)^```\nexit code (\d+)$", done.stdout, re.DOTALL | re.MULTILINE)
    assert len(blocks) == done.stdout.count("\nexit code ") > 70
    for command, output, code in blocks:
        assert "Traceback" not in output, command
        assert int(code) in (0, 1, 2, 3, 4, 5, 130), f"{command}: {code}\n{output}"
        assert code == "0" or output, command
    for beginning, code in EXPECTED.items():
        assert [int(c) for command, _, c in blocks if command.startswith(beginning)] == [code], beginning
