#!/usr/bin/env bash
# Random calls of every operator, directly and as models in ONNX Runtime, under AddressSanitizer and UBSan: SECONDS_EACH
# seconds (60) for each operator. Then every libFuzzer program of fuzz/ for as long, where clang is to be had; the inputs
# that they find stay in build/fuzz/corpus.
FOR="${SECONDS_EACH:-60}"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
tools/build.sh asan
export POLYOP_FUZZ_SECONDS="$FOR"
step "Random calls, $FOR s an operator" build/asan/bin/robustness_test --gtest_brief=1
step "Random models in ONNX Runtime, $FOR s an operator" build/asan/bin/random_models_test --gtest_brief=1

if ! command -v clang++ >/dev/null; then
  packages=(clang libclang-rt-dev)
  as_root=(sudo -n)
  [ "$(id -u)" -ne 0 ] || as_root=()
  step "Installing ${packages[*]}" "${as_root[@]}" apt-get install -y -q --no-install-recommends "${packages[@]}" ||
    die "clang++ with libFuzzer is needed. Ask for: apt-get install ${packages[*]}"
fi
tools/build.sh fuzz
for source in $(grep -l LLVMFuzzerTestOneInput fuzz/*.cc); do
  name="$(basename "$source" .cc)"
  mkdir -p "build/fuzz/corpus/$name"
  step "Fuzzing $name for $FOR s" "build/fuzz/bin/$name" -max_total_time="$FOR" -rss_limit_mb=4096 \
    -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus/$name" $(ls -d "fuzz/corpus/$name" 2>/dev/null || true)
done
