#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lint.sh           checks the format, the words and the spelling of what git tracks and runs the linters. Changes
#                   nothing
# lint.sh --fix     formats, and applies ruff's safe fixes
# lint.sh --quick   leaves out clang-tidy, which requires a build
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 --fix --quick -- "$@"
mode="${1:-check}"
[ -x "$VENV/bin/codespell" ] || tools/setup_python.sh
PATH="$VENV/bin:$PATH"

mapfile -t cxx < <(git ls-files '*.cc' '*.h' '*.cu')
mapfile -t units < <(git ls-files '*.cc' ':!fuzz/operators.cc' ':!bench' ':!examples/cpp' ':!examples/executorch' \
  ':!platform/windows' ':!tests/windows')

spelling() { git ls-files -z | xargs -0 codespell; }

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
step "Checking the format of C++" clang-format --dry-run --Werror "${cxx[@]}"
step "Checking the format of Python" ruff format --check --quiet
step "Running ruff" ruff check --quiet
step "Checking the types of Python" mypy
step "Checking the workflows" check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
step "Checking dependabot.yml" check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
step "Checking the issue forms" check-jsonschema --builtin-schema vendor.github-issue-forms \
  .github/ISSUE_TEMPLATE/{bug,operator}.yml
step "Checking the spelling" spelling
step "Checking the words and the width of prose" python tools/check_words.py
step "Checking the direction of dependencies" tools/check_rooms.py
[ "$mode" != --quick ] || exit 0
tools/setup.sh
tools/build.sh release # generated headers, compile_commands.json
step "Running clang-tidy" tidy
