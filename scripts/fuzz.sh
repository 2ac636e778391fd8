#!/usr/bin/env bash
# Fuzzes with coverage guidance (libFuzzer, from Debian's package clang), under AddressSanitizer and
# UndefinedBehaviorSanitizer.
#
#   scripts/fuzz.sh [SECONDS each, default 60] [TARGET…, default all: the names of tests/fuzz/fuzz_*.cpp]
#
# What raises coverage is kept in build/fuzz/corpora/TARGET and used by the next run; a failing input is
# build/fuzz/failures/TARGET-…, and the exit code is then 1. Inputs worth keeping go to
# tests/fuzz/corpora/TARGET, which the test suite runs: `build/fuzz/tests/fuzz_TARGET -merge=1
# tests/fuzz/corpora/TARGET build/fuzz/corpora/TARGET` takes only what adds coverage.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang++ >/dev/null || { echo "error: no clang++
  hint: apt install clang" >&2; exit 3; }
seconds=${1:-60}
[ $# -eq 0 ] || shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || for source in tests/fuzz/fuzz_*.cpp; do
  name=$(basename "$source" .cpp)
  targets+=("${name#fuzz_}")
done
mkdir -p build/fuzz
cmake --preset fuzz >build/fuzz/configure.log 2>&1 || { tail -n 20 build/fuzz/configure.log >&2; exit 1; }
cmake --build build/fuzz --target "${targets[@]/#/fuzz_}" >build/fuzz/build.log 2>&1 ||
  { tail -n 40 build/fuzz/build.log >&2; exit 1; }
mkdir -p build/fuzz/failures
failed=0
for target in "${targets[@]}"; do
  program=build/fuzz/tests/fuzz_$target corpus=build/fuzz/corpora/$target
  "$program" --write-corpus "$corpus"
  echo "$target: $seconds s"
  "$program" "$corpus" "tests/fuzz/corpora/$target" -max_total_time="$seconds" -max_len=65536 -timeout=20 \
    -rss_limit_mb=2048 -dict="build/fuzz/corpora/$target.dict" \
    -artifact_prefix="build/fuzz/failures/$target-" -print_final_stats=1 >"build/fuzz/$target.log" 2>&1 || {
    failed=1
    tail -n 30 "build/fuzz/$target.log" >&2
    echo "$target: FAILED, see build/fuzz/$target.log" >&2
  }
  grep -hE 'stat::number_of_executed_units|^#.*DONE' "build/fuzz/$target.log" || true
done
exit "$failed"
