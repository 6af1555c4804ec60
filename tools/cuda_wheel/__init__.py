"""Libraries alone, in lib/: polyop finds them (polyop.get_onnxruntime_op_path and others). Nothing is imported from here."""
