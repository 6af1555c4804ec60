# SPDX-License-Identifier: Apache-2.0
"""Counts the tests in FOLDER/STAGE/*.xml (JUnit) and exits with 1 unless all ran and passed.

The last line printed is the sum of all stages.
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def count(file: Path) -> tuple[int, int, int]:
    """Returns the numbers of passed, failed and not run tests of a file of GoogleTest or pytest."""
    passed = failed = not_run = 0
    for case in ElementTree.parse(file).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            not_run += 1
        else:
            passed += 1
    return passed, failed, not_run


def main(folder: str, *stages: str) -> int:
    total = [0, 0, 0]
    for stage in stages:
        counts = [count(file) for file in Path(folder, stage).glob("*.xml")] or [(0, 0, 1)]
        passed, failed, not_run = (sum(column) for column in zip(*counts, strict=True))
        print(f"  {stage:<9} {passed:>6} passed  {failed:>3} failed  {not_run:>3} not run")
        total = [a + b for a, b in zip(total, (passed, failed, not_run), strict=True)]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} not run")
    return int(total[1] > 0 or total[2] > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("stages", nargs="+", metavar="STAGE")
    options = parser.parse_args()
    sys.exit(main(options.folder, *options.stages))
