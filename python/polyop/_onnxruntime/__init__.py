# SPDX-License-Identifier: Apache-2.0
"""polyop in ONNX Runtime: sessions and the execution provider."""
