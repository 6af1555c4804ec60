#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs.sh           generates docs/operators/ (a page for each operator and a table of all) and the table of MMCV's
#                   functions between the two marks in docs/openmmlab.md, from the operators' definitions; and
#                   docs/pytorch-operators.md, from the translations of PyTorch's operators; and the types of the
#                   functions of polyop.functional, polyop.numpy, polyop.jax and polyop.tvm_ffi
# docs.sh --check   changes nothing; fails if any of these is out of date
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 --check -- "$@"
mode="${1:-write}"
if [ "$mode" != --check ]; then
  tools/setup.sh
  tools/build.sh release
  PATH="$VENV/bin:$PATH"
fi
POLYOP="$VENV/bin/polyop"
OUT="$(mktemp -d)"
trap 'rm -rf "$OUT"' EXIT

# write_table FILE NAME TABLE   prints FILE with the table between its two marks
write_table() {
  local begin="<!-- $2: written by make docs -->" end="<!-- end of $2 -->"
  grep -qxF "$begin" "$1" && grep -qxF "$end" "$1" || die "$1 lacks the lines '$begin' and '$end'"
  TABLE="$3" awk -v begin="$begin" -v end="$end" '
    $0 == end { inside = 0 }
    !inside { print }
    $0 == begin { inside = 1; print ""; print ENVIRON["TABLE"]; print "" }' "$1"
}
write_table docs/openmmlab.md functions "$("$VENV/bin/python" -m polyop.compat.mmcv_ext --markdown)" >"$OUT/openmmlab.md"
"$VENV/bin/python" tools/pytorch_operators.py >"$OUT/pytorch-operators.md"
mkdir "$OUT/types" "$OUT/operators"
for module in functional numpy jax tvm_ffi; do
  "$VENV/bin/python" tools/stubs.py "$module" >"$OUT/types/$module.pyi"
done
"$POLYOP" ops --markdown | "$VENV/bin/python" tools/catalogue.py >"$OUT/operators/README.md"
for op in $("$POLYOP" ops --json | python -c 'import json, sys; print(*[o["name"] for o in json.load(sys.stdin)])'); do
  "$POLYOP" ops "$op" --markdown >"$OUT/operators/$op.md"
done
"$VENV/bin/python" tools/catalogue.py --pages "$OUT/operators"

if [ "$mode" = --check ]; then
  diff -u docs/openmmlab.md "$OUT/openmmlab.md" && diff -u docs/pytorch-operators.md "$OUT/pytorch-operators.md" && for types in "$OUT"/types/*; do diff -u "python/polyop/$(basename "$types")" "$types" || exit 1; done && diff -ru docs/operators "$OUT/operators" || die "The generated documentation is out of date: run make docs"
else
  cp "$OUT/openmmlab.md" "$OUT/pytorch-operators.md" docs/
  cp "$OUT"/types/*.pyi python/polyop/
  rm -rf docs/operators
  mkdir -p docs
  cp -r "$OUT/operators" docs/operators
fi
