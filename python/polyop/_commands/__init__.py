"""The command line.

main        `python -m polyop`, which `polyop` calls for the commands in Python
batch, convert, optimize, portable, triton
            the commands: SUMMARY, FOOTER, NEEDS, add_arguments(parser) and run(options), which returns the exit code
run_engine, run_openvino, run_torch
            models that the commands run, verify and bench of `polyop` run in Python (bridge.py has the protocol)
"""
