"""Holds libraries in lib/, which polyop finds (`polyop.get_onnxruntime_op_path`). Nothing is imported from here."""
