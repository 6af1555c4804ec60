#!/usr/bin/env bash
# lint.sh          checks format and runs the linters on what git tracks; changes nothing
# lint.sh --fix    formats, and applies ruff's safe fixes
# lint.sh --quick  all but clang-tidy, which needs a build
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
mode="${1:-check}"
[ -x "$VENV/bin/check-jsonschema" ] || tools/setup_python.sh
PATH="$VENV/bin:$PATH"

mapfile -t cxx < <(git ls-files '*.cc' '*.h' '*.cu')
mapfile -t units < <(git ls-files '*.cc' ':!fuzz/operators.cc' ':!bench' ':!examples/cpp')

tidy() {
  printf '%s\n' "${units[@]}" |
    xargs -P "$CMAKE_BUILD_PARALLEL_LEVEL" -n 1 clang-tidy -p build/release --quiet --warnings-as-errors='*' 2>/dev/null
}

if [ "$mode" = --fix ]; then
  step "Formatting C++" clang-format -i "${cxx[@]}"
  step "Formatting Python" ruff format --quiet
  step "Fixing Python" ruff check --fix --quiet
  exit 0
fi
step "Format of C++" clang-format --dry-run --Werror "${cxx[@]}"
step "Format of Python" ruff format --check --quiet
step "ruff" ruff check --quiet
step "Workflows" check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
step "Rooms: inclusion goes one way" tools/check_rooms.py
[ "$mode" != --quick ] || exit 0
tools/setup.sh
tools/build.sh release # generated headers, compile_commands.json
step "clang-tidy" tidy
