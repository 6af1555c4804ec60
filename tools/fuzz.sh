#!/usr/bin/env bash
# Runs every libFuzzer program of fuzz/ for SECONDS_EACH seconds (60); found inputs stay in build/fuzz/corpus.
FOR="${SECONDS_EACH:-60}"
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
command -v clang++ >/dev/null || die "clang++ with libFuzzer is needed. Ask for: apt-get install clang libclang-rt-dev"
tools/build.sh fuzz
for source in $(grep -l LLVMFuzzerTestOneInput fuzz/*.cc); do
  name="$(basename "$source" .cc)"
  mkdir -p "build/fuzz/corpus/$name"
  step "Fuzzing $name for $FOR s" "build/fuzz/bin/$name" -max_total_time="$FOR" -rss_limit_mb=4096 \
    -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus/$name" $(ls -d "fuzz/corpus/$name" 2>/dev/null || true)
done
