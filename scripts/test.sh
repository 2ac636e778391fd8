#!/usr/bin/env bash
# Installs what is missing, builds everything, and runs all tests that need no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_deps.sh --tests
scripts/build.sh -DCAPSTONE_TESTS=ON -DCAPSTONE_BENCHMARKS=ON
# Some tests hide the Toolkit; without a network they skip and say so.
scripts/fetch_cuda_headers.sh || echo "note: CUDA's headers could not be fetched; the tests without a Toolkit skip" >&2
# Twice at most: some tests hold time limits, which a busy machine breaks now and then.
ctest --preset release -j "$(nproc)" --repeat until-pass:2 "$@"
