"""ONNX models in Python: the catalogue of operators, functions of standard operators, and files."""
