#!/usr/bin/env bash
# Installs what is missing, builds everything, and runs all tests that need no GPU. Arguments go to ctest.
# CAPSTONE_WHOLE_LADDERS=1 in the environment judges every rung, and each in whole: before a release, and after
# work on the judge, the emulator or a rung. Without it, the first and the last rung of each ladder are judged.
# CAPSTONE_WERROR=ON in the environment turns compiler warnings into errors (.ci/run does).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_deps.sh --tests
scripts/build.sh -DCAPSTONE_TESTS=ON -DCAPSTONE_BENCHMARKS=ON -DCAPSTONE_WERROR="${CAPSTONE_WERROR:-OFF}"
# Some tests hide the Toolkit; without a network they skip and say so.
scripts/fetch_cuda_headers.sh ||
  echo "note: CUDA's headers could not be fetched; the tests without a Toolkit skip" >&2
ctest --preset release -j "$(nproc)" "$@"
