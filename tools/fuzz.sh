#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh          runs random calls of every operator under AddressSanitizer and UBSan, directly and as models in ONNX
#                  Runtime, then libFuzzer, which needs clang; before these, polyop's commands on random models of
#                  ONNX's operators. Each takes SECONDS_EACH seconds (default: 60) an operator. libFuzzer starts from
#                  fuzz/corpus and from its earlier findings in build/fuzz/corpus. OPERATORS='nms my_add' selects
#                  operators
# fuzz.sh --keep   adds to fuzz/corpus a minimal set of the findings that reach code the kept calls do not reach.
#                  fuzz/kept_calls_test.cc runs the kept calls in every build with tests
FOR="${SECONDS_EACH:-60}"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 --keep -- "$@"
read -r -a operators <<<"${OPERATORS:-$(cd ops && echo *)}"
corpus=build/fuzz/corpus

# fuzz OPERATOR ARGUMENTS…   runs libFuzzer. To run one of its artifacts again, pass the path as the only argument
fuzz() {
  POLYOP_FUZZ_OPERATOR="$1" build/fuzz/bin/operators -max_len=512 -rss_limit_mb=4096 \
    -artifact_prefix="build/fuzz/$1-" "${@:2}"
}

# unpack OPERATOR FOLDER   writes the kept calls as files
unpack() {
  local digits number=0
  mkdir -p "$2"
  [ -f "fuzz/corpus/$1.txt" ] || return 0
  while read -r digits; do
    printf "$(sed 's/../\\x&/g' <<<"$digits")" >"$2/kept-$((++number))"
  done <"fuzz/corpus/$1.txt"
}

keep() {
  local operator chosen call
  for operator in "${operators[@]}"; do
    mkdir -p "$corpus/$operator"
    chosen="$(mktemp -d)"
    unpack "$operator" "$chosen"
    fuzz "$operator" -set_cover_merge=1 -use_counters=0 "$chosen" "$corpus/$operator" 2>build/fuzz/merge.log || return 1
    for call in "$chosen"/*; do
      od -An -v -tx1 "$call" | tr -d ' \n'
      echo
    done | LC_ALL=C sort >"fuzz/corpus/$operator.txt"
    rm -r "$chosen"
  done
}

play() {
  local operator
  for operator in "${operators[@]}"; do
    unpack "$operator" "$corpus/$operator"
    fuzz "$operator" -max_total_time="$FOR" -verbosity=0 "$corpus/$operator" || return 1
  done
}

if [ "${1:-}" = --keep ]; then
  step "Choosing the calls to keep" keep
  exit 0
fi
tools/setup.sh
tools/build.sh release
rewriting=$((FOR * ${#operators[@]}))
step "Rewriting random models by optimize, portable and convert --fp16, $rewriting s" \
  "$VENV/bin/python" -m tests.support.random_models "$rewriting"
tools/build.sh asan
export POLYOP_FUZZ_SECONDS="$FOR"
only="$(printf ':*/%s' "${operators[@]}")"
step "Running random calls, $FOR s an operator" build/asan/bin/robustness_test --gtest_brief=1 --gtest_filter="${only:1}"
step "Running random models in ONNX Runtime, $FOR s an operator" build/asan/bin/random_models_test --gtest_brief=1 \
  --gtest_filter="${only:1}"

if ! command -v clang++ >/dev/null; then
  packages=(clang libclang-rt-dev)
  as_root=(sudo -n)
  [ "$(id -u)" -ne 0 ] || as_root=()
  step "Installing ${packages[*]}" "${as_root[@]}" apt-get install -y -q --no-install-recommends "${packages[@]}" ||
    die "clang++ with libFuzzer is required. Install it as root: apt-get install ${packages[*]}"
fi
tools/build.sh fuzz
step "Running libFuzzer, $FOR s an operator" play
