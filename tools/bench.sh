#!/usr/bin/env bash
# Benchmarks of the kernels. Arguments go to Google Benchmark, e.g. --benchmark_filter=roi_align
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
tools/build.sh release
[ -x build/release/bin/polyop_bench ] || die "bench/ has no benchmarks yet."
exec build/release/bin/polyop_bench "$@"
