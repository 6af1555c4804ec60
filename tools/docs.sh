#!/usr/bin/env bash
# Writes the table of operators, which `polyop ops --markdown` prints from the definitions, between the
# two marks in README.md. With --check: changes nothing, fails if the table is out of date.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
BEGIN='<!-- operators: written by make docs -->'
END='<!-- end of operators -->'
mode="${1:-write}"
if [ "$mode" != --check ]; then
  tools/setup.sh
  tools/build.sh release
fi

grep -qxF "$BEGIN" README.md && grep -qxF "$END" README.md || die "README.md lacks the lines '$BEGIN' and '$END'"
table="$("$VENV/bin/polyop" ops --markdown)" || die "'polyop ops --markdown' failed"
fresh="$(TABLE="$table" awk -v begin="$BEGIN" -v end="$END" '
  $0 == end { inside = 0 }
  !inside { print }
  $0 == begin { inside = 1; print ""; print ENVIRON["TABLE"]; print "" }' README.md)"
if [ "$mode" = --check ]; then
  [ "$fresh" = "$(cat README.md)" ] || die "README.md's table of operators is out of date: run make docs"
else
  printf '%s\n' "$fresh" >README.md
fi
