# SPDX-License-Identifier: Apache-2.0
"""The command line.

main        `python -m polyop`, which `polyop` calls for the commands in Python
attach, batch, convert, doctor, optimize, portable, triton
            the commands: SUMMARY, FOOTER, NEEDS, add_arguments(parser) and run(options), which returns the exit code
bisect, draw_detections, read_image, run_engine, run_onnxruntime, run_openvino, run_torch, verify_photos,
verify_report
            what the commands run, verify and bench of `polyop` do in Python (bridge.py has the protocol)
"""
