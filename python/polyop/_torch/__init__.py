# SPDX-License-Identifier: Apache-2.0
"""polyop in PyTorch: the operators, what PyTorch needs to know of them, and what the ONNX exporters write for them."""
