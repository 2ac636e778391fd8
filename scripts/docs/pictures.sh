#!/usr/bin/env bash
# Takes the pictures of docs/images from a finished example's report, with a headless Chromium.
#   scripts/docs/pictures.sh [EXAMPLE, default fusion_wins]
# Exit codes: 0 done · 3 no Chromium.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/chromium.sh
. scripts/chromium.sh
need_chromium
example=examples/${1:-fusion_wins}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p docs/images

picture() {  # NAME WIDTH HEIGHT CSS: the report with these style rules added
  sed "s|</head>|<style>$4</style></head>|" "$example/report/worklog.html" >"$work/page.html"
  browse "$work" --window-size="$2,$3" --screenshot="$PWD/docs/images/$1.png" "file://$work/page.html" \
    >/dev/null
  echo "docs/images/$1.png ($(du -h "docs/images/$1.png" | cut -f1))"
}
# The masthead with both results, then the table of versions.
hidden='main>section:not(#section-2),footer,#section-2>h2,#section-2 .prose>*:not([id$=-versions]),[id$=-versions]>details'
picture report 1000 815 "$hidden{display:none!important}"
