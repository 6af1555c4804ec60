#!/usr/bin/env bash
# Puts what is too old or missing in stable distributions into .deps/, without touching the system:
#   .deps/highway       source of Google Highway >= 1.2 (built here as a static library)
#   .deps/onnxruntime   headers of ONNX Runtime (polyop loads the runtime, it never links it)
# Both come through apt from the distribution's own signed archive: on Debian from the suite that has
# them, on Ubuntu from the machine's own. POLYOP_HIGHWAY_ROOT and ONNXRUNTIME_ROOT come first.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

HIGHWAY_AT_LEAST=1.2.0
ONNXRUNTIME_AT_LEAST=1.17
APT_DIR="$DEPS/apt" # apt's private lists, cache and downloads; removed at the end
PRIVATE=(-o Dir::State::lists="$APT_DIR/lists" -o Dir::Cache="$APT_DIR/cache" -o Dir::Etc::trustedparts="$APT_DIR/keys"
  -o APT::Update::Post-Invoke-Success= -o APT::Sandbox::User="$(id -un)")

# The suite to read: Debian's stable since 2025 has both; older Debians read it, newer ones read their own.
choose_suite() {
  . /etc/os-release
  OS="${PRETTY_NAME:-this system}"
  OWN_SUITE="${VERSION_CODENAME:-}"
  case "${ID:-}:$OWN_SUITE" in
    debian:buster | debian:bullseye | debian:bookworm) SUITE=trixie ;;
    debian:) OWN_SUITE=sid SUITE=sid ;;
    *) SUITE="$OWN_SUITE" ;;
  esac
}

private_apt() {
  local tool="$1"
  shift
  # No system-wide pins or hooks: they are meant for the machine's own suite.
  "$tool" -q -o Dir::Etc::sourcelist="$APT_DIR/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferencesparts=/dev/null "${PRIVATE[@]}" "$@"
}

# apt's own view of its sources, so that one-line and deb822 files both work, rewritten to SUITE.
rewritten_sources() {
  apt-get indextargets "$@" --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)' |
    awk -v own="$OWN_SUITE" -v suite="$SUITE" \
      '$2 == own && $4 == "Packages" && !seen[$1 $3]++ { print "deb", $1, suite, $3; print "deb-src", $1, suite, $3 }'
}

write_sources() {
  rm -rf "$APT_DIR"
  mkdir -p "$APT_DIR"/lists/partial "$APT_DIR"/cache/archives/partial "$APT_DIR/download" "$APT_DIR/keys"
  # The distribution's own keys: a deb822 source names them by path, which indextargets does not tell.
  cp -L /etc/apt/trusted.gpg.d/*.{gpg,asc} /usr/share/keyrings/{debian,ubuntu}-archive-keyring.gpg "$APT_DIR/keys" 2>/dev/null || true
  rewritten_sources >"$APT_DIR/sources.list"
  if [ ! -s "$APT_DIR/sources.list" ]; then # container images come without package lists
    apt-get update -q "${PRIVATE[@]}"
    rewritten_sources "${PRIVATE[@]}" >"$APT_DIR/sources.list"
  fi
  [ -s "$APT_DIR/sources.list" ]
}

update_lists() { private_apt apt-get update -o Acquire::Languages=none; }

newest() { # newest source|package NAME: its version in SUITE without epoch and revision, or nothing
  if [ "$1" = source ]; then
    private_apt apt-cache showsrc "$2" 2>/dev/null | awk '$1 == "Version:" { print $2 }'
  else
    private_apt apt-cache show "$2" 2>/dev/null | awk '$1 == "Version:" { print $2 }'
  fi | sort -V | tail -n1 | sed -E 's/^[0-9]+://; s/[-+~].*//'
}

at_least() { [ -n "$1" ] && [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }

get_highway() {
  local version
  version="$(newest source highway)"
  at_least "$version" "$HIGHWAY_AT_LEAST" || die "$OS offers Highway ${version:-nothing}, polyop needs \
$HIGHWAY_AT_LEAST or newer.
       Unpack a source release of google/highway and set POLYOP_HIGHWAY_ROOT to its folder."
  (cd "$APT_DIR/download" && private_apt apt-get source --download-only highway >/dev/null) # checks signature and hashes
  rm -rf "$DEPS/highway" && mkdir -p "$DEPS/highway"
  tar -xf "$APT_DIR"/download/highway_*.orig.tar.* -C "$DEPS/highway" --strip-components=1
  [ -f "$DEPS/highway/hwy/highway.h" ] && say "    Highway $version in .deps/highway"
}

get_onnxruntime() {
  local version
  version="$(newest package libonnxruntime-dev)"
  at_least "$version" "$ONNXRUNTIME_AT_LEAST" || die "$OS offers no headers of ONNX Runtime >= $ONNXRUNTIME_AT_LEAST.
       Unpack a C++ release of onnxruntime and set ONNXRUNTIME_ROOT to the folder that holds include/."
  (cd "$APT_DIR/download" && private_apt apt-get download libonnxruntime-dev >/dev/null)
  rm -rf "$DEPS/onnxruntime" && mkdir -p "$DEPS/onnxruntime"
  dpkg-deb --fsys-tarfile "$APT_DIR"/download/libonnxruntime-dev_*.deb |
    tar -x -C "$DEPS/onnxruntime" --strip-components=3 ./usr/include/onnxruntime
  mv "$DEPS/onnxruntime/onnxruntime" "$DEPS/onnxruntime/include"
  [ -f "$DEPS/onnxruntime/include/onnxruntime_c_api.h" ] && say "    ONNX Runtime $version headers in .deps/onnxruntime"
}

wanted=()
if [ -z "${POLYOP_HIGHWAY_ROOT:-}" ] && [ ! -f "$DEPS/highway/hwy/highway.h" ]; then wanted+=(highway); fi
if [ -z "${ONNXRUNTIME_ROOT:-}" ] && [ ! -f "$DEPS/onnxruntime/include/onnxruntime_c_api.h" ]; then wanted+=(onnxruntime); fi
if [ ${#wanted[@]} -eq 0 ]; then exit 0; fi

advice="Set POLYOP_HIGHWAY_ROOT (sources of google/highway >= $HIGHWAY_AT_LEAST) and ONNXRUNTIME_ROOT (a release of \
onnxruntime with include/)."
command -v apt-get >/dev/null || die "apt-get is not here to fetch ${wanted[*]}. $advice"
choose_suite
trap 'rm -rf "$APT_DIR"' EXIT
write_sources || die "apt lists no source for '$OWN_SUITE' $advice"
step "Reading the package lists of $SUITE (into .deps/, the system stays as it is)" update_lists
for what in "${wanted[@]}"; do step "Fetching $what" "get_$what"; done
