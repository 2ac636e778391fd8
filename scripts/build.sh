#!/usr/bin/env bash
# Configures and builds build/release. Arguments go to cmake's configure step.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
log=build/configure.log
cmake --preset release "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; exit 1; }
# One line when there is nothing to do; the moving count of ninja otherwise.
cmake --build build/release -j "$(nproc)"
