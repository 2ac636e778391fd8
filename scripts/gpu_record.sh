#!/usr/bin/env bash
# On a GPU machine: judges a reference kernel of every problem through the tool itself and keeps its records.
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
record bias_gelu_layernorm 03
record softmax 04
record conv_bias_scale_relu 03
record sgemm 08
rm -rf "$work"
exit $status
