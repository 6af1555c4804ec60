#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# release.sh [--dry-run] [--publish] [--skip STEP]…   runs the steps of a release and stops at the first that fails.
#
#   tree      checks that nothing is uncommitted
#   version   checks that the version of python/polyop/__init__.py is CHANGELOG.md's newest, has a date, and that no
#             other commit has its tag
#   tests     runs all tests (tools/test.sh all)
#   source    builds the source distribution into dist/
#   wheels    builds the portable wheels into dist/ (tools/wheels.sh)
#   cuda      builds the wheel with CUDA kernels into dist/ if nvcc is installed (tools/cuda_wheel.sh)
#   audit     checks the wheels' contents and requirements, and runs them in fresh environments
#   deb       builds the Debian package into dist/ (tools/deb.sh)
#   npm       builds the npm package (tools/wasm.sh) and packs it into dist/
#   site      builds the documentation into build/site (tools/site.sh)
#   index     writes dist/SHA256SUMS and the package index dist/index, and installs polyop from it as a user would
#   tag       creates the tag vVERSION locally
#   upload    lists the files of the release
#
# --dry-run creates no tag and accepts a version without a date. Nothing leaves this machine without --publish, which
# pushes the tag. The workflow release.yml then builds and uploads the release.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

STEPS=(tree version tests source wheels cuda audit deb npm site index tag upload)
dry=no publish=no skipped=()
while [ $# -gt 0 ]; do
  case "$1" in
    --dry-run) dry=yes ;;
    --publish) publish=yes ;;
    --skip)
      one_of "${2:-}" "${STEPS[@]}"
      skipped+=("$2")
      shift
      ;;
    *) refuse "unknown argument '$1'" ;;
  esac
  shift
done
[ "$dry$publish" != yesyes ] || refuse "--dry-run and --publish exclude each other"
VERSION="$(polyop_version)"
[ -n "$VERSION" ] || die "python/polyop/__init__.py has no line __version__ = \"…\""
TAG="v$VERSION"

tagged() { git rev-parse -q --verify "refs/tags/$TAG^{commit}"; }
tag_is_free() { ! tagged >/dev/null || [ "$(tagged)" = "$(git rev-parse HEAD)" ]; }

do_tree() {
  local changed
  changed="$(git status --porcelain)"
  [ -z "$changed" ] || die "uncommitted files:"$'\n'"$changed"
}

do_version() {
  local newest
  newest="$(grep -m1 '^## \[' CHANGELOG.md || true)"
  case "$newest" in
    "## [$VERSION] - 2"[0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]) say "    $VERSION, dated in CHANGELOG.md" ;;
    "## [$VERSION] - unreleased")
      [ "$dry" = yes ] || die "CHANGELOG.md: '$newest' expected the release's date instead of 'unreleased'"
      say "    $VERSION, not yet dated in CHANGELOG.md"
      ;;
    *) die "python/polyop/__init__.py has version $VERSION, the newest entry of CHANGELOG.md is '$newest', expected '## [$VERSION] - DATE'" ;;
  esac
  tag_is_free || die "the tag $TAG belongs to another commit: raise __version__ in python/polyop/__init__.py"
}

do_tests() { tools/test.sh all; }

do_source() {
  tools/setup.sh || return
  rm -f dist/polyop-*.tar.gz
  "$VENV/bin/python" -c 'from scikit_build_core.build import build_sdist; build_sdist("dist")'
}

do_wheels() { tools/wheels.sh; }

do_cuda() {
  if has_cuda; then
    tools/cuda_wheel.sh
  else
    say "    nvcc was not found: not building the wheel with CUDA kernels"
  fi
}

do_audit() {
  local arch
  for arch in x86_64 aarch64; do
    compgen -G "dist/polyop-$VERSION-*_$arch.whl" >/dev/null || die "dist/ has no wheel of $VERSION for $arch"
    "$VENV/bin/python" tools/check_notices.py "build/portable/$arch/polyop" || return
  done
  "$VENV/bin/python" -m pytest -q tests/packaging/test_wheels.py tests/packaging/test_wheel_matrix.py
}

do_deb() { tools/deb.sh; }

do_npm() { tools/wasm.sh && tar -C build/wasm -czf "dist/polyop-$VERSION.tgz" package; }

do_site() { tools/site.sh; }

do_index() {
  "$VENV/bin/python" tools/package_index.py dist "$VERSION" || return
  POLYOP_WHEEL="$(echo "dist/polyop-$VERSION-"*"_$(uname -m).whl")" \
    "$VENV/bin/python" -m pytest -q tests/packaging/test_package_index.py
}

do_tag() {
  if tagged >/dev/null; then
    say "    $TAG exists"
  elif [ "$dry" = yes ]; then
    say "    would run: git tag -a $TAG -m 'polyop $VERSION'"
  else
    git tag -a "$TAG" -m "polyop $VERSION"
  fi
}

do_upload() {
  local file files=()
  for file in dist/polyop-"$VERSION"[-.]* dist/polyop_cuda1?-"$VERSION"-* dist/polyop_"$VERSION"[_-]*; do [ ! -f "$file" ] || files+=("$file"); done
  [ ${#files[@]} -gt 0 ] || say "    dist/ has no files of $VERSION"
  for file in "${files[@]}"; do say "    $(sha256sum "$file" | cut -c1-64)  $(stat -c %s "$file")  $file"; done
  [ ! -f build/site/index.html ] || say "    build/site, $(find build/site -name '*.html' | wc -l) pages"
  if [ "$publish" = yes ]; then
    git push origin "$TAG"
  else
    say "    nothing was published. --publish pushes $TAG; the workflow release.yml then builds and uploads the release"
  fi
}

say "${BOLD}polyop $VERSION${PLAIN}$([ "$dry" = no ] || echo ' (dry run)')"
for i in "${!STEPS[@]}"; do
  name="${STEPS[$i]}"
  title="[$((i + 1))/${#STEPS[@]}] $name"
  if [[ " ${skipped[*]} " = *" $name "* ]]; then
    say "${BOLD}==> $title${PLAIN}: skipped"
  else
    step "$title" "do_$name"
  fi
done
