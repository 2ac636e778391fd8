#!/usr/bin/env bash
# On a GPU machine: judges the ladders of languages and records them.
#
#   scripts/gpu_languages.sh OUT [CAPSTONE [PYTHON_PATH]]
#
# PYTHON_PATH: folders with the unpacked wheels of TileLang and CuTe-DSL, separated by colons; without them
# their rungs are recorded as not built. OUT/<device>.json is the results file (for
# reference_kernels/results/languages), OUT/<ladder>.txt the printed output. Needs nvcc and a python3 with
# PyTorch and Triton. Exit code 1 if a rung failed, 3 if this machine lacks something.
set -uo pipefail
out=$(mkdir -p "${1:?usage: scripts/gpu_languages.sh OUT [CAPSTONE [PYTHON_PATH]]}" && cd "$1" && pwd) || exit 2
capstone=${2:-capstone}
more=()
[ -n "${3:-}" ] && more=(--python-path "$3")
# shellcheck source=scripts/gpu_queue.sh
. "$(dirname "${BASH_SOURCE[0]}")/gpu_queue.sh"
file=$(results_name) || exit 2
file=$out/$file
status=0
for ladder in softmax_languages gemm_languages attention_languages; do
  "$capstone" ladder "$ladder" "${more[@]}" --budget 3 --record "$file" >"$out/$ladder.txt" 2>"$out/$ladder.log"
  code=$?
  [ $code = 0 ] || { status=$code; echo "error: $ladder: $(tail -n 3 "$out/$ladder.log")" >&2; }
  cat "$out/$ladder.txt"
done
exit $status
