#!/usr/bin/env bash
# Writes what the definitions say: the table of operators between the two marks in README.md, and a page for
# each operator in docs/operators/. With --check: changes nothing, fails if any of it is out of date.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
BEGIN='<!-- operators: written by make docs -->'
END='<!-- end of operators -->'
mode="${1:-write}"
if [ "$mode" != --check ]; then
  tools/setup.sh
  tools/build.sh release
fi
POLYOP="$VENV/bin/polyop"
OUT="$(mktemp -d)"
trap 'rm -rf "$OUT"' EXIT

grep -qxF "$BEGIN" README.md && grep -qxF "$END" README.md || die "README.md lacks the lines '$BEGIN' and '$END'"
TABLE="$("$POLYOP" ops --markdown)" awk -v begin="$BEGIN" -v end="$END" '
  $0 == end { inside = 0 }
  !inside { print }
  $0 == begin { inside = 1; print ""; print ENVIRON["TABLE"]; print "" }' README.md >"$OUT/README.md"
mkdir "$OUT/operators"
for op in $("$POLYOP" ops --json | python -c 'import json, sys; print(*[o["name"] for o in json.load(sys.stdin)])'); do
  "$POLYOP" ops "$op" --markdown >"$OUT/operators/$op.md"
done

if [ "$mode" = --check ]; then
  diff -u README.md "$OUT/README.md" && diff -ru docs/operators "$OUT/operators" || die "The documentation is out of date: run make docs"
else
  cp "$OUT/README.md" README.md
  rm -rf docs/operators
  mkdir -p docs
  cp -r "$OUT/operators" docs/operators
fi
