#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# site.sh   builds the documentation as a site into build/site. A broken link or anchor is an error. Requires neither
# polyop's libraries nor .venv: its tools are installed into build/site-tools.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
TOOLS="$ROOT/build/site-tools"

install_tools() {
  rm -rf "$TOOLS"
  "${PYTHON:-python3}" -m venv "$TOOLS" &&
    "$TOOLS/bin/python" -m pip --disable-pip-version-check install -qq -r requirements/site.txt
}

stamp_is "$TOOLS/.stamp" requirements/site.txt requirements/lint.txt || step "Installing requirements/site.txt into build/site-tools" install_tools
stamp_write "$TOOLS/.stamp" requirements/site.txt requirements/lint.txt
# No --quiet: it would suppress warnings, which would then not count as errors.
build_site() {
  NO_MKDOCS_2_WARNING=1 PATH="$TOOLS/bin:$PATH" "$TOOLS/bin/mkdocs" build --strict -f site/mkdocs.yml 2>&1 | { grep -v '^INFO' || true; }
}

# An unchanged site is not built again.
mapfile -t inputs < <(git ls-files -co --exclude-standard -- '*.md' site requirements/site.txt docs python bench/results)
if ! stamp_is build/site/.stamp "${inputs[@]}"; then
  step "Building the site" build_site
  stamp_write build/site/.stamp "${inputs[@]}"
fi
say "The site: build/site/index.html. With its search: python3 -m http.server -d build/site"
