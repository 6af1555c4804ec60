# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that fetch from the distribution's signed archive without changing the system. apt runs with
# separate package lists, cache and downloads.
#
#   open_archive own|newer|unstable|experimental KINDS [ARCHITECTURE]   reads a suite's lists of packages (deb), sources
# (deb-src) or both: this system's, Debian 13's on older releases, or Debian's unstable or experimental. On other
# distributions each is the system's own. Later calls fetch from this suite. Everything is removed on exit
APT_DIR="$DEPS/apt"
PRIVATE=(-o Dir::State::lists="$APT_DIR/lists" -o Dir::Cache="$APT_DIR/cache" -o Dir::Etc::trustedparts="$APT_DIR/keys"
  -o APT::Update::Post-Invoke-Success= -o APT::Sandbox::User="$(id -un)")

# choose_suite own|newer|unstable|experimental
choose_suite() {
  . /etc/os-release
  OS="${PRETTY_NAME:-this system}"
  OWN_SUITE="${VERSION_CODENAME:-}"
  [ "${ID:-}:$OWN_SUITE" != debian: ] || OWN_SUITE=sid
  case "$1:${ID:-}:$OWN_SUITE" in
    newer:debian:buster | newer:debian:bullseye | newer:debian:bookworm) SUITE=trixie ;;
    unstable:debian:*) SUITE=sid ;;
    experimental:debian:*) SUITE=experimental ;;
    *) SUITE="$OWN_SUITE" ;;
  esac
}

private_apt() {
  local tool="$1"
  shift
  # System-wide pins and hooks are ignored, because they are meant for the machine's own suite.
  "$tool" -q -o Dir::Etc::sourcelist="$APT_DIR/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferencesparts=/dev/null "${PRIVATE[@]}" "$@"
}

# Prints apt's own sources, security updates included, rewritten to SUITE. Unstable and experimental have no security
# updates. Works for one-line and for deb822 files.
rewritten_sources() {
  apt-get indextargets "$@" --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(CREATED_BY)' |
    awk -v own="$OWN_SUITE" -v suite="$SUITE" -v kinds="$KINDS" '
      ($2 == own || ($2 == own "-security" && suite !~ /^(sid|experimental)$/)) && $4 == "Packages" && !seen[$1 $2 $3]++ {
        sub("^" own, suite, $2)
        for (i = split(kinds, kind, " "); i > 0; --i) print kind[i], $1, $2, $3
      }'
}

write_sources() {
  rm -rf "$APT_DIR"
  mkdir -p "$APT_DIR"/lists/partial "$APT_DIR"/cache/archives/partial "$APT_DIR/download" "$APT_DIR/keys"
  # Copies the distribution's keys: a deb822 source names them by a path that indextargets does not print.
  cp -L /etc/apt/trusted.gpg.d/*.{gpg,asc} /usr/share/keyrings/{debian,ubuntu}-archive-keyring.gpg "$APT_DIR/keys" 2>/dev/null || true
  rewritten_sources >"$APT_DIR/sources.list"
  if [ ! -s "$APT_DIR/sources.list" ]; then # container images have no package lists
    apt-get update -q "${PRIVATE[@]}"
    rewritten_sources "${PRIVATE[@]}" >"$APT_DIR/sources.list"
  fi
  [ -s "$APT_DIR/sources.list" ]
}

update_lists() { private_apt apt-get update -o Acquire::Languages=none; }

open_archive() {
  command -v apt-get >/dev/null || die "apt-get is required to fetch missing dependencies. ${ADVICE:-}"
  choose_suite "$1"
  KINDS="$2"
  if [ -n "${3:-}" ]; then PRIVATE+=(-o APT::Architecture="$3" -o APT::Architectures="$3"); fi
  trap 'rm -rf "$APT_DIR"' EXIT
  write_sources || die "apt has no source for '$OWN_SUITE'. ${ADVICE:-}"
  step "Reading the package lists of $SUITE${3:+ for $3} (into .deps/, without changing the system)" update_lists
}

# fetch_source NAME FOLDER   unpacks a source package as its maintainers released it. apt checks signature and hashes.
# If the archive lists a version whose files it does not have (yet), the next older one is fetched.
fetch_source() {
  local downloads="$APT_DIR/download/$1" version fetched=''
  for version in $(private_apt apt-cache showsrc "$1" | awk '$1 == "Version:" { print $2 }' | sort -Vru); do
    rm -rf "$downloads" && mkdir -p "$downloads"
    if (cd "$downloads" && private_apt apt-get source --download-only "$1=$version" >/dev/null); then
      fetched="$version"
      break
    fi
    say "    $1 $version cannot be fetched"
  done
  [ -n "$fetched" ] || return
  rm -rf "$2" && mkdir -p "$2"
  tar -xf "$(find "$downloads" -name '*.orig.tar.*' ! -name '*.asc')" -C "$2" --strip-components=1 # not its signature
}

# patch_source NAME FOLDER   applies the distribution's fixes: debian/patches of a source that fetch_source has fetched
patch_source() {
  local downloads="$APT_DIR/download/$1" patches="$APT_DIR/download/$1/debian/patches" file
  tar -xf "$downloads"/*.debian.tar.* -C "$downloads"
  [ -f "$patches/series" ] || return 0
  sed -E 's/[[:space:]]*(#.*)?$//' "$patches/series" | while read -r file; do
    [ -z "$file" ] || patch -p1 --silent --no-backup-if-mismatch -d "$2" <"$patches/$file"
  done
}

# newest source|package NAME   prints its version in SUITE without epoch and revision, or nothing
newest() {
  if [ "$1" = source ]; then
    private_apt apt-cache showsrc "$2" 2>/dev/null | awk '$1 == "Version:" { print $2 }'
  else
    private_apt apt-cache show "$2" 2>/dev/null | awk '$1 == "Version:" { print $2 }'
  fi | sort -V | tail -n1 | sed -E 's/^[0-9]+://; s/[-+~].*//'
}

at_least() { [ -n "$1" ] && [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n1)" = "$2" ]; }
