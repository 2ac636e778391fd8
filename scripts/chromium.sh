# shellcheck shell=bash
#
# For scripts that check pages: . scripts/chromium.sh. Then `browse WORK_FOLDER ARGUMENT…` runs a headless
# Chromium that keeps its profile and log in the folder. `need_chromium` ends the script with exit code 3 if
# there is no Chromium.
need_chromium() {
  for chromium in chromium chromium-browser google-chrome; do
    command -v "$chromium" >/dev/null && return
  done
  echo "error: no Chromium found" >&2
  echo "  hint: apt-get install chromium" >&2
  exit 3
}

browse() {
  local work=$1
  shift
  timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
    --disable-extensions --disable-background-networking \
    --disable-component-update --disable-sync --user-data-dir="$work/profile" "$@" 2>>"$work/browser.log"
}
