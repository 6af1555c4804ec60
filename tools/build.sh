#!/usr/bin/env bash
# build.sh PRESET [target…]   configures when needed and builds. 'release' is then usable from .venv; before there is one,
# 'demonstration' is.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
preset="${1:-release}"
shift || true

configure() { cmake --preset "$preset" --log-level=NOTICE; }
compile() { cmake --build --preset "$preset" ${@:+--target "$@"}; }

# Python and the shell see the build tree itself: nothing is copied, a rebuild is visible at once.
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
# What .venv has decides what is built (PyTorch's library), so the build is configured again when that changes.
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
# TensorRT's plugins are CUDA kernels: only the build with CUDA has them.
if [[ "$preset" = cuda* ]] && [ -f "build/$preset/lib/libpolyop_tensorrt.so" ]; then
  mkdir -p python/polyop/lib
  ln -sfn "$ROOT/build/$preset/lib/libpolyop_tensorrt.so" python/polyop/lib/
fi
