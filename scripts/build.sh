#!/usr/bin/env bash
# Configures and builds build/release, or the folder in $BUILD. Arguments go to cmake's configure step.
# On a terminal ninja shows its moving count; elsewhere a line every ten seconds says how far the build is.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
mkdir -p "$build"
log=$build/configure.log
cmake --preset release -B "$build" "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
if [ -t 1 ]; then exec cmake --build "$build" -j "$(nproc)"; fi

log=$build/build.log
: >"$log"
while sleep 10 >/dev/null 2>&1; do
  count=$(tail -n 20 "$log" | grep -oE '^[0-9]+ of [0-9]+' | tail -n 1) && echo "building: $count"
done &
ticker=$!
trap 'kill "$ticker" 2>/dev/null' EXIT
NINJA_STATUS='%f of %t  ' cmake --build "$build" -j "$(nproc)" >"$log" 2>&1 ||
  { tail -n 40 "$log" >&2; exit 1; }
tail -n 1 "$log"
