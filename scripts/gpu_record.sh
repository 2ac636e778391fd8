#!/usr/bin/env bash
# On a GPU machine: judges the last rung of every ladder through the tool itself and keeps its records.
#   scripts/gpu_record.sh OUT [capstone]
# OUT gets one ledger a problem (<problem>.jsonl), the printed table (<problem>.txt) and doctor.txt.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
capstone=${2:-capstone}
work=$(mktemp -d)
"$capstone" doctor >"$out/doctor.txt" 2>&1
status=0
record() {  # problem rung model-rung
  local problem=$1 human=$2
  "$capstone" init "$problem" "$work/$problem" --from "$human" >/dev/null || { status=1; return; }
  ( cd "$work/$problem" && "$capstone" predict memory >/dev/null
    "$capstone" measure human -m "reference kernel $human" >"$out/$problem.txt" 2>"$out/$problem.log" ) || status=1
  cp "$work/$problem/.capstone/ledger.jsonl" "$out/$problem.jsonl"
  echo "== $problem ($human)"
  cat "$out/$problem.txt"
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for definition in "$root"/problems/*/problem.yaml; do
  problem=$(basename "$(dirname "$definition")")
  last=$(printf '%s\n' "$root"/reference_kernels/*/"$problem"/*.cu | sed 's|.*/||; s|\.cu$||' | sort | tail -n 1)
  record "$problem" "$last"
done
rm -rf "$work"
exit $status
