#!/usr/bin/env bash
# On a GPU machine: judges the last rung of every ladder against PyTorch, eager and compiled, through the tool itself.
#   scripts/gpu_record.sh OUT [CAPSTONE [SECONDS [TEXT]]]     # 2 s of timing a contestant; TEXT: only problems whose name matches it, a regular expression
# Uses every visible GPU, one problem each at a time. OUT gets one ledger a problem (<problem>.jsonl), the printed table (<problem>.txt), doctor.txt, and the summary
# pytorch.json: of each problem the arms' medians, the speedup and the verdict, with device, date and version.
# Exit codes: 0 every problem was judged · 1 one was not.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
capstone=$(readlink -f "$(command -v "${2:-capstone}")")
budget=${3:-2}
only=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/gpu_queue.sh
. "$root/scripts/gpu_queue.sh"
"$capstone" doctor >"$out/doctor.txt" 2>&1

# shellcheck disable=SC2317  # on_every_gpu calls it
record() {  # problem
  local problem=$1 rung
  rung=$(printf '%s\n' "$root"/reference_kernels/*/"$problem"/*.cu | sed 's|.*/||; s|\.cu$||' | sort | tail -n 1)
  "$capstone" init "$problem" "$work/$problem" --from "$rung" >"$out/$problem.log" 2>&1 || { echo "$problem: init failed"; return 1; }
  ( cd "$work/$problem" &&
    "$capstone" measure human -m "reference kernel $rung" --baselines eager,compile --budget "$budget" >"$out/$problem.txt" 2>>"$out/$problem.log" )
  local code=$?
  cp "$work/$problem/.capstone/ledger.jsonl" "$out/$problem.jsonl"
  echo "$problem ($rung): exit code $code, $((SECONDS)) s"
  return "$code"
}

mapfile -t problems < <(for definition in "$root"/problems/*/problem.yaml; do basename "$(dirname "$definition")"; done | grep -E -- "$only")
status=0
printf '%s\n' "${problems[@]}" | on_every_gpu record || status=1

python3 - "$out" <<'P'
import json, pathlib, sys

out = pathlib.Path(sys.argv[1])
rows = []
for file in sorted(out.glob("*.jsonl")):
    for line in map(json.loads, file.read_text().splitlines()):
        body = line["body"]
        if line["kind"] != "measurement" or not body.get("measured"):
            continue
        measured = body["measured"]
        rows.append({"problem": body["problem_id"], "problem_digest": body["problem_digest"], "kernel": body["reason"], "source_sha256": body["source_sha256"], "tool": line["tool"],
                     "time": line["time"], "device": body["environment"].get("device"), "tier": body["tier"], "gate_one": body["gate_one"], "gate_two": body["gate_two"],
                     "speedup": measured.get("speedup"), "percent_of_peak": measured.get("percent_of_peak"), "bound_by": measured.get("bound_by"), "sizes": measured.get("sizes"),
                     "arms": [{k: v for k, v in arm.items() if k in ("name", "label", "median_ms")} for arm in measured["arms"] if arm["name"] != "A/A"]})
(out / "pytorch.json").write_text(json.dumps(rows, indent=1) + "\n")
for row in rows:
    print(f"{row['problem']:28} {row['gate_two']:12} " + "  ".join(f"{arm['name']} {1e3 * arm['median_ms']['point']:.0f} us" for arm in row["arms"]))
P
exit $status
