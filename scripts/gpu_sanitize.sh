#!/usr/bin/env bash
# Runs every reference kernel for this GPU at small sizes under compute-sanitizer's memcheck and racecheck, on this
# machine's GPU.
#
#   scripts/gpu_sanitize.sh OUT_FOLDER [TEXT]      # TEXT: only rungs whose path contains it
#
# Builds tests/gpu/launch_small.cu once per rung, in parallel. Writes OUT_FOLDER/sanitizer.txt, one line per
# rung and tool, with the end of the tool's report if it found an error. Exits 1 if a rung does not build or
# is not clean. Needs nvcc, compute-sanitizer and a GPU.
set -euo pipefail

out=${1:?usage: scripts/gpu_sanitize.sh OUT_FOLDER [TEXT]}
only=${2:-}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || { echo "error: no nvcc; set CUDA_HOME or PATH" >&2; exit 3; }
sanitizer=$(command -v compute-sanitizer || true)
[ -n "$sanitizer" ] || sanitizer=$(dirname "$nvcc")/compute-sanitizer
[ -x "$sanitizer" ] || { echo "error: no compute-sanitizer; it comes with the CUDA Toolkit" >&2; exit 3; }
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')
[ -n "$capability" ] || { echo "error: nvidia-smi names no GPU" >&2; exit 3; }
# shellcheck source=scripts/gpu_queue.sh
. "$root/scripts/gpu_queue.sh"
[ "$capability" -ge 90 ] && capability=${capability}a
export root build nvcc sanitizer \
  flags="-std=c++20 -O3 -lineinfo -gencode arch=compute_$capability,code=sm_$capability"

(cd "$root" && for rung in reference_kernels/*/*/*.cu; do
  problem=$(basename "$(dirname "$rung")")
  [ -f "problems/$problem/problem.yaml" ] && [[ $rung == *"$only"* ]] && runs_here "$problem" && echo "$rung"
done; true) > "$build/rungs"
[ -s "$build/rungs" ] || { echo "error: no rung that this GPU runs contains '$only'" >&2; exit 2; }

# shellcheck disable=SC2317  # xargs calls it
judge_one() {
  local rung=$1 problem program tool verdict
  problem=$(basename "$(dirname "$rung")")
  program=$build/$(tr / . <<< "$rung")
  # shellcheck disable=SC2086  # the flags are a list
  if ! "$nvcc" $flags "-DPROBLEM=$problem" "-DKERNEL_FILE=\"$root/$rung\"" \
    "$root/tests/gpu/launch_small.cu" -o "$program" \
    > "$program.log" 2>&1; then
    printf '%-80s %-10s FAILED (does not build)\n' "$rung" -
    tail -n 15 "$program.log"
    return
  fi
  for tool in memcheck racecheck; do
    if timeout 240 "$sanitizer" --tool $tool --error-exitcode 9 "$program" > "$program.$tool.log" 2>&1; then
      verdict=clean
    else
      verdict="FAILED ($?)"
    fi
    printf '%-80s %-10s %s\n' "$rung" $tool "$verdict"
    [ "$verdict" = clean ] || tail -n 15 "$program.$tool.log"
  done
}
export -f judge_one
# One file per rung, so that the lines of a report stay together.
#
# shellcheck disable=SC2016  # the inner shell expands it
xargs -P "$(nproc)" -L 1 bash -c 'judge_one "$1" > "$build/$(tr / . <<< "$1").txt"' judge_one < "$build/rungs"
while read -r rung; do cat "$build/$(tr / . <<< "$rung").txt"; done < "$build/rungs" > "$out/sanitizer.txt"
echo "compute-sanitizer: $(grep -c ' clean$' "$out/sanitizer.txt" || true) clean, $(grep -c FAILED "$out/sanitizer.txt" || true) failed"
! grep -q FAILED "$out/sanitizer.txt"
