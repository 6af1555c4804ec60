# SPDX-License-Identifier: Apache-2.0
"""`polyop optimize`: replaces nodes of standard operators by polyop's nodes where these are faster.

Patterns find matches (patterns/) in a scope, which knows the model's tensors (scope.py). Every match is compared with
the nodes that it replaces (checking.py), and the optimized model with the original (optimizer.py).
"""

from polyop.optimizing.errors import FileError, OptimizeError
from polyop.optimizing.optimizer import optimize
from polyop.optimizing.report import Finding, Report

__all__ = ["FileError", "Finding", "OptimizeError", "Report", "optimize"]
