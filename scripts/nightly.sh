#!/usr/bin/env bash
# What is too heavy for the test suite, one after the other; needs no GPU. About eight hours on two cores,
# seven of them fuzzing.
#
#   scripts/nightly.sh [OUT_FOLDER, default build/nightly]
#
#   suite      every test, each once (scripts/test.sh also installs what is missing)
#   lint       `capstone problems lint` of every problem that ships, with reference.py where PyTorch is there
#   ladders    every rung of every ladder, 20 hidden sizes instead of 2, under all schedules and in the
#              instrumented builds
#   barriers   each barrier of each reference kernel deleted, one at a time: is it noticed?
#   cohort     a generated cohort of 300 submissions graded in 15 minutes and 500 MB a process
#   odr        the program linked with -flto -Wodr: no two types of one name differ
#   fuzz       every fuzz target, an hour each, under libFuzzer; needs clang
#
# Writes a log a step, prints one line a step, and exits 1 when a step failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
out=${1:-build/nightly}
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
capstone=$PWD/build/release/bin/capstone
failed=0

step() {  # step NAME COMMAND…
  local name=$1 start=$SECONDS
  shift
  if "$@" > "$out/$name.log" 2>&1; then
    printf '%-10s passed  %4d s\n' "$name" $((SECONDS - start))
  else
    printf '%-10s FAILED  %4d s  see %s\n' "$name" $((SECONDS - start)) "$out/$name.log"
    failed=1
  fi
}

# shellcheck disable=SC2317  # step calls it
lint_all() {
  local bad=0 definition
  for definition in problems/*/problem.yaml; do
    echo "== $definition"
    "$capstone" problems lint "$(dirname "$definition")" || bad=1
  done
  return "$bad"
}

# Each rung as a student hands it in: a project that begins with it.
# shellcheck disable=SC2317  # step calls it
measure_rungs() {
  local bad=0 rung problem project
  for rung in reference_kernels/*/*/*.cu; do
    problem=$(basename "$(dirname "$rung")")
    [ -f "problems/$problem/problem.yaml" ] || continue
    echo "== $rung"
    project=$(mktemp -d "$out/rung.XXXXXX")
    { "$capstone" init "$problem" "$project/p" --from "$(basename "$rung" .cu)" --member nightly &&
      (cd "$project/p" && "$capstone" measure -m nightly --backend emulated --hidden 20 --timeout 120); } ||
        bad=1
    rm -rf "$project"
  done
  return "$bad"
}

# shellcheck disable=SC2317  # step calls it
grade_cohort() {
  local place start=$SECONDS
  place=$(mktemp -d "$out/cohort.XXXXXX")
  scripts/make_cohort "$place/c" --count 300 || return 1
  (exec python3 -c '
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print("exit code", code, "peak of the largest process", peak, "MB")
sys.exit(0 if code == 4 and peak <= 500 else 1)' "$capstone" grade "$place/c/submissions" --out "$place/out" \
  --backend emulated --quick -j "$(nproc)") || return 1
  echo "$((SECONDS - start)) s"
  scripts/make_cohort "$place/c" --check "$place/out" && [ $((SECONDS - start)) -le 900 ] && rm -rf "$place"
}

# shellcheck disable=SC2317  # step calls it
link_whole() {
  BUILD=build/odr scripts/build.sh -DCAPSTONE_TESTS=OFF -DCAPSTONE_BENCHMARKS=OFF -DCMAKE_UNITY_BUILD=OFF \
    -DCAPSTONE_PRECOMPILED_HEADERS=OFF -DCMAKE_CXX_FLAGS="-flto=auto -Wodr -Werror=odr"
}

scripts/build.sh -DCAPSTONE_TESTS=ON -DCAPSTONE_BENCHMARKS=ON > "$out/build.log" 2>&1 ||
  { echo "build FAILED, see $out/build.log"; exit 1; }
step suite ctest --preset release -j "$(nproc)"
step lint lint_all
step ladders measure_rungs
step barriers scripts/mutate_barriers.sh
step cohort grade_cohort
step odr link_whole
step fuzz scripts/fuzz.sh 3600
exit "$failed"
