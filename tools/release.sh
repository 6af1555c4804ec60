#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# release.sh [--dry-run] [--publish] [--from STEP] [--only STEP]… [--skip STEP]…   runs the steps of a release and stops
# at the first that fails. Builds are incremental: `--from STEP` continues after a repair.
#
#   tree      checks that nothing is uncommitted
#   version   checks that the version of python/polyop/__init__.py is CHANGELOG.md's newest, has a date, that no other
#             commit has its tag, and that no page says that polyop is not published
#   tests     runs all tests (tools/test.sh all)
#   source    builds the source distribution into dist/
#   x86_64, aarch64, windows, macos   build the portable wheel for this system into dist/ (tools/wheels.sh)
#   cuda      builds the wheel with CUDA kernels into dist/ if nvcc is installed (tools/cuda_wheel.sh)
#   audit     checks the wheels' contents and requirements, and runs them in fresh environments
#   deb       builds the Debian package into dist/ (tools/deb.sh)
#   npm       builds the npm package (tools/wasm.sh) and packs it into dist/
#   site      builds the documentation into build/site (tools/site.sh)
#   index     writes dist/SHA256SUMS and the package index dist/index, and installs polyop from it as a user would
#   tag       creates the tag vVERSION locally
#   upload    lists the files of the release
#
# --from leaves out the steps before STEP except tree and version, --only all but those that it names. --dry-run creates
# no tag and accepts a version without a date. Nothing leaves this machine without --publish, which pushes the tag. The
# workflow release.yml then runs these steps, several machines at once, and uploads the release.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

STEPS=(tree version tests source x86_64 aarch64 windows macos cuda audit deb npm site index tag upload)
dry=no publish=no from=tree only=() skipped=() options=()
while [ $# -gt 0 ]; do
  [ "$1" = --from ] || options+=("$1")
  case "$1" in
    --dry-run) dry=yes ;;
    --publish) publish=yes ;;
    --from | --only | --skip)
      one_of "${2:-}" "${STEPS[@]}"
      case "$1" in
        --from) from="$2" ;;
        --only) only+=("$2") options+=("$2") ;;
        --skip) skipped+=("$2") options+=("$2") ;;
      esac
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
  local unpublished
  unpublished="$(git grep -n 'polyop is not published yet' -- '*.md' cli python || true)"
  [ -z "$unpublished" ] || [ "$dry" = yes ] || die "these lines are wrong from this release on:"$'\n'"$unpublished"
  tag_is_free || die "the tag $TAG belongs to another commit: raise __version__ in python/polyop/__init__.py"
}

do_tests() { tools/test.sh all; }

do_source() {
  tools/setup.sh || return
  rm -f dist/polyop-*.tar.gz
  "$VENV/bin/python" -c 'from scikit_build_core.build import build_sdist; build_sdist("dist")'
}

do_x86_64() { tools/wheels.sh x86_64; }
do_aarch64() { tools/wheels.sh aarch64; }
do_windows() { tools/wheels.sh windows; }
do_macos() { tools/wheels.sh macos; }

do_cuda() {
  if has_cuda; then
    tools/cuda_wheel.sh
  else
    say "    nvcc was not found: not building the wheel with CUDA kernels"
  fi
}

# portable_wheel SYSTEM   prints the file of this version's wheel for a system
portable_wheel() {
  local file
  file="$(compgen -G "dist/polyop-$VERSION-py3-none-*$1.whl" | grep -v -- '-linux_')" || die "dist/ has no portable wheel of $VERSION for $1"
  say "$file"
}

# Builds what the tests compare with, and what defines the npm package.
build_release() { tools/setup.sh && tools/build.sh release polyop polyop_onnxruntime polyop_accelerator polyop_torch; }

do_audit() {
  local system
  for system in x86_64 aarch64 win_amd64 macosx_12_0_arm64; do portable_wheel "$system" || return; done
  build_release && "$VENV/bin/python" -m pytest -q tests/packaging/test_{wheels,wheel_matrix,desktop_wheels}.py
}

do_deb() { tools/deb.sh; }

do_npm() { build_release && tools/wasm.sh && mkdir -p dist && tar -C build/wasm -czf "dist/polyop-$VERSION.tgz" package; }

do_site() { tools/site.sh; }

do_index() {
  local wheel
  wheel="$(portable_wheel "_$(uname -m)")" && build_release &&
    "$VENV/bin/python" tools/package_index.py dist "$VERSION" &&
    POLYOP_WHEEL="$wheel" "$VENV/bin/python" -m pytest -q tests/packaging/test_package_index.py
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
  for file in dist/polyop-"$VERSION"[-.]* dist/polyop_cuda1?-"$VERSION"-* dist/polyop_"$VERSION"[_-]*; do
    [ ! -f "$file" ] || [[ "$file" = *-linux_* ]] || files+=("$file")
  done
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
# runs STEP   succeeds if the options select the step
runs() {
  [[ " ${skipped[*]} " != *" $1 "* ]] || return 1
  if [ ${#only[@]} -gt 0 ] && [[ " ${only[*]} " != *" $1 "* ]]; then return 1; fi
  [ "$reached" = yes ] || [ "$1" = tree ] || [ "$1" = version ]
}
reached=no failing=''
trap '[ -z "$failing" ] || say "    After the repair: $0 ${options[*]:+${options[*]} }--from $failing" >&2' EXIT
for i in "${!STEPS[@]}"; do
  name="${STEPS[$i]}"
  title="[$((i + 1))/${#STEPS[@]}] $name"
  [ "$name" != "$from" ] || reached=yes
  if runs "$name"; then
    failing="$name"
    step "$title" "do_$name"
    failing=''
  else
    say "${BOLD}==> $title${PLAIN}: skipped"
  fi
done
