#!/usr/bin/env bash
# Random calls of every operator, directly and as models in ONNX Runtime, under AddressSanitizer and UBSan: SECONDS_EACH
# seconds (60) for each operator. Then libFuzzer for as long, where clang is to be had: it begins with what fuzz/corpus
# keeps and what it found before, which lies in build/fuzz/corpus. OPERATORS='nms my_add' plays these alone.
# fuzz.sh --keep   writes into fuzz/corpus what was found: as few calls of each operator as reach all the code that the
#                  found ones and the kept ones do. fuzz/kept_calls_test.cc plays them in every build with tests.
FOR="${SECONDS_EACH:-60}"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
read -r -a operators <<<"${OPERATORS:-$(cd ops && echo *)}"
corpus=build/fuzz/corpus

# fuzz OPERATOR ARGUMENTS…   its artifacts are played again in the same way, with their path for the only argument
fuzz() {
  POLYOP_FUZZ_OPERATOR="$1" build/fuzz/bin/operators -max_len=512 -rss_limit_mb=4096 \
    -artifact_prefix="build/fuzz/$1-" "${@:2}"
}

# unpack OPERATOR   its kept calls as files, beside those that were found
unpack() {
  local digits number=0
  mkdir -p "$corpus/$1"
  [ -f "fuzz/corpus/$1.txt" ] || return 0
  while read -r digits; do
    printf "$(sed 's/../\\x&/g' <<<"$digits")" >"$corpus/$1/kept-$((++number))"
  done <"fuzz/corpus/$1.txt"
}

keep() {
  local operator chosen call
  mkdir -p fuzz/corpus
  for operator in "${operators[@]}"; do
    unpack "$operator"
    chosen="$(mktemp -d)"
    fuzz "$operator" -set_cover_merge=1 -use_counters=0 "$chosen" "$corpus/$operator" 2>"build/fuzz/merge.log" || return 1
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
    unpack "$operator"
    fuzz "$operator" -max_total_time="$FOR" -verbosity=0 "$corpus/$operator" || return 1
  done
}

if [ "${1:-}" = --keep ]; then
  step "Choosing the calls to keep" keep
  exit 0
fi
tools/setup.sh
tools/build.sh asan
export POLYOP_FUZZ_SECONDS="$FOR"
only="$(printf ':*/%s' "${operators[@]}")"
step "Random calls, $FOR s an operator" build/asan/bin/robustness_test --gtest_brief=1 --gtest_filter="${only:1}"
step "Random models in ONNX Runtime, $FOR s an operator" build/asan/bin/random_models_test --gtest_brief=1 \
  --gtest_filter="${only:1}"

if ! command -v clang++ >/dev/null; then
  packages=(clang libclang-rt-dev)
  as_root=(sudo -n)
  [ "$(id -u)" -ne 0 ] || as_root=()
  step "Installing ${packages[*]}" "${as_root[@]}" apt-get install -y -q --no-install-recommends "${packages[@]}" ||
    die "clang++ with libFuzzer is needed. Ask for: apt-get install ${packages[*]}"
fi
tools/build.sh fuzz
step "libFuzzer, $FOR s an operator" play
