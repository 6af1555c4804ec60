#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# first_hour.sh [ENVIRONMENT]   makes the usual mistakes of a first hour, one by one, and prints a page with each
# command, its output and its exit code, for a person to read through: every message should say what was expected, what
# was given and what to do next.
#
#   tools/first_hour.sh > page.md                 with the program and the package of this checkout
#   tools/first_hour.sh ENVIRONMENT > page.md     with those of a virtual environment, for example one with a wheel
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 1 -- "$@"
environment=$(realpath "${1:-$VENV}")
[[ -x $environment/bin/polyop ]] || die "$environment has no program polyop: run \`make build\`"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export PATH="$environment/bin:/usr/bin:/bin" NO_COLOR=1 LC_ALL=C.UTF-8 TMPDIR="$folder/tmp"
mkdir tmp

section() { printf '\n## %s\n' "$1"; }

# Prints a command, what it writes, and its exit code.
try() {
  local code=0
  printf '\n```\n$ %s\n' "$*"
  timeout 300 bash -c "$*" 2>&1 < /dev/null | sed "s#$folder/##g; s#$environment#ENVIRONMENT#g" || code=${PIPESTATUS[0]}
  printf '```\nexit code %s\n' "$code"
}

# Writes the models and images of the page.
python - << 'END'
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

HEAD = 'ir_version: 8, opset_import: ["": 17, "mmcv": 1, "nobody": 1]'


def write(name, text):
    model = onnx.parser.parse_model(f"<{HEAD}> g {text}")
    onnx.save(model, name)
    return model


ROIS = "(float[1, 2, 8, 8] x, float[n, 5] rois) => (float[n, 2, 2, 2] y) { y = mmcv.%s<output_height = 2, %s = 2>(x, rois) }"
write("head.onnx", ROIS % ("MMCVRoiAlign", "output_width"))
write("misspelt.onnx", ROIS % ("MMCVRoiAlign", "output_widht"))
write("renamed.onnx", ROIS % ("RoiAlignPlus", "output_width"))
write("unknown.onnx", "(float[n, 4] x) => (float[n, 4] y) { y = nobody.Frobnicate(x) }")
write("no_such_standard.onnx", "(float[n, 4] x) => (float[n, 4] y) { y = Relux(x) }")
write("half.onnx", "(float16[n, 4] boxes, float16[n] scores) => (int64[k] keep) { keep = mmcv.NonMaxSuppression(boxes, scores) }")
write("detector.onnx", "(float[1, 3, 32, 32] image) => (float[20, 4] boxes) { z = ReduceMean<axes = [1, 3]>(image) e = Reshape(z, s) boxes = Tile(c, t) }"
      .replace("{ z", "<int64[2] s = {32, 1}, int64[2] t = {20, 4}, float[1, 1] c = {0.5}> { z"))
write("photos.onnx", "(float[n, 3, h, w] x) => (float[n, 3, h, w] y) { y = Identity(x) }")
write("fixed.onnx", "(float[1, 3, 224, 224] x) => (float[1, 3, 224, 224] y) { y = Identity(x) }")
outside = onnx.parser.parse_model(f"<{HEAD}> g (float[1, 9] x) => (float[1, 99] y) {{ y = MatMul(x, w) }}")
weights = outside.graph.initializer
weights.append(numpy_helper.from_array(np.ones((9, 99), np.float32), "w"))
onnx.save(outside, "outside.onnx", save_as_external_data=True, location="weights.data", size_threshold=0)
outside = onnx.load("outside.onnx", load_external_data=False)
outside.graph.initializer[0].external_data[0].value = "lost.data"
onnx.save(outside, "lost.onnx")
Path("empty.onnx").touch()
Path("text.onnx").write_text("this is text\n")
boxes = "(float[1, 16, 64, 64] x, float[n, 4] b, int64[n] i) => (float[n, 16, 7, 7] y) { y = RoiAlign<output_height = 7, output_width = 7, sampling_ratio = 2>(x, b, i) }"
write("standard.onnx", boxes)
rng = np.random.default_rng(0)
from PIL import Image

for k in range(1500):
    path = Path("in") / f"{k // 100}" / f"{k:03}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rng.integers(0, 256, (128, 128, 3), np.uint8)).save(path)
Path("mixed").mkdir()
Image.open("in/0/000.png").save("mixed/good.jpg")
Image.open("in/0/000.png").convert("CMYK").save("mixed/print.jpg")
Path("mixed/damaged.png").write_bytes(b"none")
END

echo "# A first hour of mistakes"
polyop --version

section "The command line"
try polyop
try polyop rnu head.onnx
try polyop help
try polyop inspect
try polyop inspect head.onnx --htlm x.html
try polyop inspect head.onnx --html head.html
try python -m polyop batch photos.onnx
try polyop doctor torch_scater
try python -m polyop optimise head.onnx -o fast.onnx
try POLYOP_KERNELS=foo polyop run head.onnx -i x=random -i rois=zeros --shape rois=1x5

section "Files"
for file in none.onnx empty.onnx text.onnx lost.onnx; do
  for command in run inspect "optimize -o fast.onnx" "portable -o new.onnx" "triton -o repository" "batch -i in -o out"; do
    read -r name options <<< "$command"
    try polyop "$name" "$file" "$options"
  done
done
try polyop optimize outside.onnx -o new/folder/fast.onnx
try polyop portable head.onnx -o other/folder/new.onnx
try polyop portable head.onnx -o head.onnx
try polyop optimize standard.onnx -o text.onnx/fast.onnx
try polyop convert head.onnx -o new.xml

section "Operators"
for file in misspelt renamed unknown no_such_standard half; do
  try polyop inspect "$file.onnx"
  try polyop run "$file.onnx"
done
for command in optimize triton convert portable; do
  try polyop "$command" unknown.onnx -o "new_$command"
done
try polyop optimize no_such_standard.onnx -o fast.onnx
for command in "optimize -o fast.onnx" "portable -o new.onnx" "triton -o repository" "batch -i in -o out" "convert -o new.engine"; do
  read -r name options <<< "$command"
  try polyop "$name" misspelt.onnx "$options"
done

section "Images"
try polyop run detector.onnx -i image=in/0/000.png -o boxes=boxes.png
try polyop run detector.onnx -i image=in/0/000.png --resize model -o boxes=boxes.png
try polyop run fixed.onnx -i x=in/0/000.png
try polyop batch fixed.onnx -i mixed -o fixed_out
try polyop batch fixed.onnx -i mixed -o fitted_out --letterbox model
try polyop batch photos.onnx -i nothing -o nothing_out
try polyop batch photos.onnx -i mixed -o one_out --format png --strict
try polyop batch photos.onnx -i mixed -o two_out --resize 12

section "Inputs"
try polyop verify head.onnx
try polyop verify head.onnx --shape rois=3x5
try polyop bench head.onnx --shape rois=3x4
try polyop run head.onnx --set rois=7,0,0,4,4 --shape rois=1x5
try polyop run head.onnx -i x=random --set rois=7,0,0,4,4 --shape rois=1x5
try polyop optimize standard.onnx -o faster.onnx --measure --all
try polyop bench standard.onnx --against faster.onnx --seconds 0.5 --shape b=64x4 --shape i=64

section "Interruptions"
try timeout --preserve-status --signal INT 3 polyop batch photos.onnx -i in -o interrupted --threads 1 --resize 256x256 --format png
try polyop batch photos.onnx -i in -o interrupted --threads 1 --resize 256x256 --format png
try timeout --preserve-status --signal INT 2 polyop optimize standard.onnx -o stopped.onnx --measure --all --shape b=100000x4 --shape i=100000
try "ls -A tmp | grep -v '^.ses$' || echo no temporary file is left"

section "Python"
try "python -c \"import polyop; polyop.session('unknown.onnx')\" 2>&1 | tail -1"
try "python -c \"import sys; sys.modules['onnxruntime'] = None; import polyop; polyop.session('head.onnx')\" 2>&1 | tail -1"
try "python -c \"import sys; sys.modules['openvino'] = None; import polyop.openvino; polyop.openvino.core()\" 2>&1 | tail -1"
try "python -c \"import sys; sys.modules['torch'] = None; import polyop; polyop.nms\" 2>&1 | tail -1"
try "python -c \"import numpy as np, polyop; polyop.nms(np.zeros((3, 4)), np.zeros(3), 0.5)\" 2>&1 | tail -1"
try "python -c \"import polyop; polyop.nsm\" 2>&1 | tail -1"
try "POLYOP_LIBRARY_DIR=/nowhere python -c \"import polyop; polyop.get_onnxruntime_op_path()\" 2>&1 | tail -1"
