#!/usr/bin/env bash
# Runs every fuzz target under AddressSanitizer and UndefinedBehaviorSanitizer: fuzz.sh [SECONDS each, default 60] [SEED, default 1]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60} seed=${2:-1}
cmake --preset asan -DCAPSTONE_TESTS=ON > /dev/null
targets=()
for source in tests/fuzz/fuzz_*.cpp; do targets+=("$(basename "$source" .cpp)"); done
cmake --build build/asan --target "${targets[@]}" > /dev/null
for target in "${targets[@]}"; do build/asan/tests/"$target" --seconds "$seconds" --seed "$seed" --out build/asan/tests; done
