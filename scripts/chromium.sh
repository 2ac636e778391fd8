# shellcheck shell=bash
# For scripts that look at pages: . scripts/chromium.sh, then `browse WORK_FOLDER ARGUMENT…` runs a headless Chromium whose profile and log lie in the folder.
# `need_chromium` ends the script with exit code 3 where there is none.
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
  timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --disable-extensions --disable-background-networking \
    --disable-component-update --disable-sync --user-data-dir="$work/profile" "$@" 2>>"$work/browser.log"
}
