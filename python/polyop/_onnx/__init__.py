# SPDX-License-Identifier: Apache-2.0
"""ONNX models in Python: the catalogue of operators, functions of standard operators, and files."""
