class OptimizeError(RuntimeError):
    """The model cannot be read, cannot run, or cannot be written."""
