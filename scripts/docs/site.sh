#!/usr/bin/env bash
# Builds the documentation's site with the ladder book in it: build/site/index.html, build/site/book/index.html.
#
#   scripts/docs/site.sh [CAPSTONE]     # default: build/release/bin/capstone
#
# Needs mkdocs-material (pip install mkdocs-material) and a build.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
capstone=${1:-$root/build/release/bin/capstone}
command -v mkdocs >/dev/null || { echo "error: no mkdocs; pip install mkdocs-material" >&2; exit 3; }
[ -x "$capstone" ] || { echo "error: no program at $capstone; run scripts/build.sh" >&2; exit 3; }
mkdocs build --quiet --strict --config-file "$root/mkdocs.yml" --site-dir "$root/build/site"
"$capstone" book "$root/build/site/book"
echo "$root/build/site/index.html"
