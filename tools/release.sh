#!/usr/bin/env bash
# release.sh [--dry-run] [--publish] [--skip STEP]…   the checklist of a release, step by step; the first that fails ends it.
#
#   tree      nothing is uncommitted
#   version   the version of python/polyop/__init__.py is CHANGELOG.md's newest, with a date, and no other commit has its tag
#   tests     all of them: tools/test.sh all
#   source    the source distribution, into dist/
#   wheels    for every Linux, into dist/: tools/wheels.sh
#   cuda      where nvcc is: the wheel of libraries with CUDA kernels, into dist/: tools/cuda_wheel.sh
#   audit     what the wheels hold and need, and that they run where they are installed with one runtime of the index
#   deb       the Debian package, into dist/: tools/deb.sh
#   site      the documentation, into build/site: tools/site.sh
#   tag       the tag vVERSION, here
#   upload    lists what belongs to the release
#
# --dry-run sets no tag and takes a version that has no date yet. Nothing leaves this machine without --publish, which pushes
# the tag; .github/workflows/release.yml uploads then.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

STEPS=(tree version tests source wheels cuda audit deb site tag upload)
dry=no publish=no skipped=()
while [ $# -gt 0 ]; do
  case "$1" in
    --dry-run) dry=yes ;;
    --publish) publish=yes ;;
    --skip)
      [[ $# -gt 1 && " ${STEPS[*]} " = *" $2 "* ]] || die "--skip wants one of: ${STEPS[*]}"
      skipped+=("$2")
      shift
      ;;
    *) die "'$1' is neither --dry-run nor --publish nor --skip STEP" ;;
  esac
  shift
done
[ "$dry$publish" != yesyes ] || die "--dry-run publishes nothing"
VERSION="$(polyop_version)"
[ -n "$VERSION" ] || die "python/polyop/__init__.py has no line __version__ = \"…\""
TAG="v$VERSION"

tagged() { git rev-parse -q --verify "refs/tags/$TAG^{commit}"; }
tag_is_free() { ! tagged >/dev/null || [ "$(tagged)" = "$(git rev-parse HEAD)" ]; }

do_tree() {
  local changed
  changed="$(git status --porcelain)"
  [ -z "$changed" ] || die "these files are not committed:"$'\n'"$changed"
}

do_version() {
  local newest
  newest="$(grep -m1 '^## \[' CHANGELOG.md || true)"
  case "$newest" in
    "## [$VERSION] - 2"[0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]) say "    $VERSION, in CHANGELOG.md with its date" ;;
    "## [$VERSION] - unreleased")
      [ "$dry" = yes ] || die "CHANGELOG.md: '$newest' wants the release's date in the place of 'unreleased'"
      say "    $VERSION, in CHANGELOG.md without a date yet"
      ;;
    *) die "python/polyop/__init__.py has version $VERSION, the newest entry of CHANGELOG.md is '$newest', wanted '## [$VERSION] - DATE'" ;;
  esac
  tag_is_free || die "the tag $TAG is another commit's: raise __version__ in python/polyop/__init__.py"
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
    say "    there is no nvcc here: no wheel of libraries with CUDA kernels"
  fi
}

do_audit() {
  local arch
  for arch in x86_64 aarch64; do
    compgen -G "dist/polyop-$VERSION-*_$arch.whl" >/dev/null || die "dist/ has no wheel of $VERSION for $arch"
    "$VENV/bin/python" tools/check_notices.py "build/portable/$arch/polyop" || return
  done
  "$VENV/bin/python" -m pytest -q tests/test_wheels.py tests/test_wheel_matrix.py
}

do_deb() { tools/deb.sh; }

do_site() { tools/site.sh; }

do_tag() {
  if tagged >/dev/null; then
    say "    $TAG is there"
  elif [ "$dry" = yes ]; then
    say "    would be: git tag -a $TAG -m 'polyop $VERSION'"
  else
    git tag -a "$TAG" -m "polyop $VERSION"
  fi
}

do_upload() {
  local file files=()
  for file in dist/polyop-"$VERSION"[-.]* dist/polyop_cuda1?-"$VERSION"-* dist/polyop_"$VERSION"[_-]*; do [ ! -f "$file" ] || files+=("$file"); done
  [ ${#files[@]} -gt 0 ] || say "    dist/ has nothing of $VERSION"
  for file in "${files[@]}"; do say "    $(sha256sum "$file" | cut -c1-64)  $(stat -c %s "$file")  $file"; done
  [ ! -f build/site/index.html ] || say "    build/site, $(find build/site -name '*.html' | wc -l) pages"
  if [ "$publish" = yes ]; then
    git push origin "$TAG"
  else
    say "    nothing was published; --publish pushes $TAG, and .github/workflows/release.yml uploads what it builds then"
  fi
}

say "${BOLD}polyop $VERSION${PLAIN}$([ "$dry" = no ] || echo ', a dry run')"
for i in "${!STEPS[@]}"; do
  name="${STEPS[$i]}"
  title="[$((i + 1))/${#STEPS[@]}] $name"
  if [[ " ${skipped[*]} " = *" $name "* ]]; then
    say "${BOLD}==> $title${PLAIN}: skipped"
  else
    step "$title" "do_$name"
  fi
done
