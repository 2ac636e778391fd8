#!/usr/bin/env bash
# Installs what is missing, builds everything, and runs all tests that need no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_deps.sh --tests
scripts/build.sh -DCAPSTONE_TESTS=ON -DCAPSTONE_BENCHMARKS=ON
scripts/fetch_cuda_headers.sh
ctest --preset release -j "$(nproc)" "$@"
