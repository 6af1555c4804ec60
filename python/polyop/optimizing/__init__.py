"""`polyop optimize`: what polyop computes faster in a model of standard operators becomes polyop's nodes.

Patterns say what there is to find (patterns/), a scope what the model's tensors are (scope.py); every match is compared
with what it replaces (checking.py), and the model with the original (optimizer.py).
"""

from polyop.optimizing.errors import FileError, OptimizeError
from polyop.optimizing.optimizer import optimize
from polyop.optimizing.report import Finding, Report

__all__ = ["FileError", "Finding", "OptimizeError", "Report", "optimize"]
