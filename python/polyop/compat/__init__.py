# SPDX-License-Identifier: Apache-2.0
"""Replacements for packages that are no longer maintained or whose compiled part does not install, with their names
and arguments.

    import polyop.compat
    polyop.compat.install()           # all that is missing or does not load; returns their names
    import torch_scatter

`python -m polyop.compat SCRIPT ARGUMENTS…` runs a script so. docs/compat.md lists the packages.
"""

from polyop.compat._packages import REPLACEMENTS, install

__all__ = ["REPLACEMENTS", "install"]
