#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh [PRESET] [TARGET…]   configures if necessary and builds a preset of CMakePresets.json (default: release). The
# preset 'release' becomes usable from .venv, and so does 'demonstration' until 'release' has been built.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept any -- "$@"
preset="${1:-release}"
shift || true

configure() { cmake --preset "$preset" --log-level=NOTICE; }
compile() { cmake --build --preset "$preset" ${@:+--target "$@"}; }

# Links the build tree into .venv. Nothing is copied, so a rebuild is visible immediately.
link_into_venv() {
  local site
  site="$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
  printf '%s\n' "$ROOT/python" >"$site/polyop.pth"
  mkdir -p python/polyop/lib
  local library
  for library in "$ROOT/build/$preset"/lib/libpolyop_*.so; do ln -sfn "$library" python/polyop/lib/; done
  ln -sfn "$ROOT/build/$preset/lib/formulas" python/polyop/lib/formulas
  ln -sfn "$ROOT/build/$preset/bin/polyop" "$VENV/bin/polyop"
  ln -sfn "build/$preset/compile_commands.json" compile_commands.json
}

[ -x "$VENV/bin/cmake" ] || die "Run tools/setup.sh (or make setup) first."
# The packages in .venv decide what is built (PyTorch's library), so a change of them configures the build again.
configured="build/$preset/.stamp-configured"
if [ ! -f "build/$preset/build.ninja" ] || ! stamp_is "$configured" "$VENV"/.stamp-*; then
  step "Configuring build/$preset" configure
  stamp_write "$configured" "$VENV"/.stamp-*
fi
step "Building build/$preset" compile "$@"
case "$preset" in
  release) link_into_venv ;;
  demonstration) [ -x build/release/bin/polyop ] || link_into_venv ;;
esac
# TensorRT's plugins are CUDA kernels, so only a build with CUDA has them.
if [[ "$preset" = cuda* ]] && [ -f "build/$preset/lib/libpolyop_tensorrt.so" ]; then
  mkdir -p python/polyop/lib
  ln -sfn "$ROOT/build/$preset/lib/libpolyop_tensorrt.so" python/polyop/lib/
fi
