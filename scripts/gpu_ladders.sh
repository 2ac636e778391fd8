#!/usr/bin/env bash
# On a GPU machine: times every ladder with capstone itself and records the results.
#
#   scripts/gpu_ladders.sh OUT [capstone] [PROBLEM…]
#
# OUT/<device>.json is the results file (for reference_kernels/results), OUT/<problem>.txt the printed output.
# Problems with larger published shapes are also timed at these; those that are bound by arithmetic also back to
# back on a warm chip. Without names: every ladder that this GPU can run, and a line for each that it cannot.
# Exit code 1 if a rung failed gate one or a ladder could not be timed; the other ladders are still run.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
capstone=${2:-capstone}
shift $(($# < 2 ? $# : 2))
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/gpu_queue.sh
. "$root/scripts/gpu_queue.sh"
file=$(results_name) || exit 2
file=$out/$file
problems=("$@")
if [ ${#problems[@]} -eq 0 ]; then
  while read -r problem; do
    if runs_here "$problem"; then problems+=("$problem"); else echo "$problem: not for this GPU" >&2; fi
  done < <(find "$root/reference_kernels" -mindepth 3 -name '*.cu' -printf '%h\n' |
    xargs -n 1 basename | sort -u)
fi
status=0
climb() {  # problem [size]
  local label=$1${2:+-$2}
  local sustained=()
  case $1 in *gemm* | *conv* | *attention*) sustained=(--sustained) ;; esac
  "$capstone" ladder "$1" ${2:+--size "$2"} "${sustained[@]}" --record "$file" >"$out/$label.txt" 2>"$out/$label.log" ||
    { status=1; echo "error: $label: $(tail -n 1 "$out/$label.log")" >&2; }
  cat "$out/$label.txt"
}
for problem in "${problems[@]}"; do
  climb "$problem"
  case $problem in
    transpose) climb transpose rows=32768,cols=32768 ;;
    sum) climb sum n=1073741824 ;;
    softmax) climb softmax rows=4096,cols=65536 ;;
  esac
done
exit $status
