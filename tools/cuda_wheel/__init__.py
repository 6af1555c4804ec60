# SPDX-License-Identifier: Apache-2.0
"""Holds libraries in lib/, which polyop finds (`polyop.get_onnxruntime_op_path`). Nothing is imported from here."""
