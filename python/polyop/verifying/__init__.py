# SPDX-License-Identifier: Apache-2.0
"""What `polyop verify` leaves to Python: models in any runtime, and where their results begin to differ.

providers   execution providers of ONNX Runtime, by name or library
sides       a model in a runtime
differences the difference between two tensors
networks    graphs whose inner values become outputs, and pairs of values of two graphs
bisecting   the first node whose output differs
page        the report as a page
halving     half precision that keeps a model's results
rounding    half precision as a device computes it
"""
