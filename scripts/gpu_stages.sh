#!/usr/bin/env bash
# On a GPU machine: how long a measurement takes, and where the time goes.
#
#   scripts/gpu_stages.sh OUT [CAPSTONE [PROBLEM…]]
#
# Judges the last rung of each problem's ladder as a new kernel, with three sets of baselines (native; eager;
# eager and compile), and once with --quick where CAPSTONE has that on a GPU. Default: five problems of
# different kinds. OUT/stages.json gets a row for each: wall time [s], the stages [s], the verdict and the
# half-widths of the intervals. CAPSTONE's own GPU programs are built before. Uses every visible GPU, one problem
# on each at a time. WAYS in the environment chooses among: first native eager compile quick (in this order).
#
# Exit codes: 0 every measurement ended with a verdict or a quick look · 1 at least one did not.
set -uo pipefail
out=$(mkdir -p "${1:?usage: scripts/gpu_stages.sh OUT [CAPSTONE [PROBLEM…]]}" && cd "$1" && pwd) || exit 2
capstone=$(readlink -f "$(command -v "${2:-capstone}")")
[ -x "$capstone" ] || { echo "error: no ${2:-capstone}" >&2; exit 2; }
shift $(($# < 2 ? $# : 2))
problems=("$@")
ways=${WAYS:-first native eager compile quick}
[ ${#problems[@]} -gt 0 ] || problems=(softmax sum transpose sgemm bias_gelu_layernorm)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/gpu_queue.sh
. "$root/scripts/gpu_queue.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NO_COLOR=1

# shellcheck disable=SC2317  # on_every_gpu calls it
measure_one() {  # PROBLEM
  local rungs=("$root"/reference_kernels/*/"$1"/*.cu) way status=0 begun
  "$capstone" init "$1" "$work/$1" --from "${rungs[-1]}" >"$out/$1.log" 2>&1 || return 1
  cd "$work/$1" || return 1
  for way in $ways; do
    printf '// %s %s\n' "$way" "$RANDOM" >>human/kernel.cu  # a new kernel: nothing of it is built yet
    local arguments=(--python none)
    case $way in
      eager) arguments=(--baselines eager) ;;
      compile) arguments=(--baselines eager,compile) ;;
      quick) arguments=(--quick) ;;
    esac
    begun=$(date +%s.%N)
    "$capstone" measure human -m "$way" "${arguments[@]}" >"$out/$1.$way.txt" 2>>"$out/$1.log" || status=1
    echo "$1 $way $(date +%s.%N) $begun" >>"$work/wall.txt"
  done
  cp .capstone/ledger.jsonl "$out/$1.jsonl"
  return $status
}
status=0
printf '%s\n' "${problems[@]}" | on_every_gpu measure_one || status=1

python3 - "$out" "$work/wall.txt" <<'P'
import json, pathlib, sys

out = pathlib.Path(sys.argv[1])
wall = {}
for line in open(sys.argv[2]):
    problem, way, end, begun = line.split()
    wall[problem, way] = float(end) - float(begun)
rows = []
for file in sorted(out.glob("*.jsonl")):
    for line in map(json.loads, file.read_text().splitlines()):
        body = line["body"]
        if line["kind"] != "measurement" or body["reason"] == "first":  # the first one builds the tool's own programs
            continue
        measured = body.get("measured") or {}
        width = {key: round((r["high"] - r["low"]) / 2 / r["point"], 4)
                 for key in ("speedup", "dirty_speedup") if (r := measured.get(key))}
        rows.append({"problem": file.stem, "baselines": body["reason"], "wall_s": round(wall[file.stem, body["reason"]], 1),
                     "stages_s": {k: round(v, 2) for k, v in body["environment"].get("telemetry", {}).get("seconds", {}).items()},
                     "gate_one": body["gate_one"], "gate_two": body["gate_two"], "reason": body.get("gate_two_reason", ""),
                     "half_widths": width, "execution": body["execution"], "tool": line["tool"], "time": line["time"],
                     "device": body["environment"].get("device"), "driver": body["environment"].get("driver")})
(out / "stages.json").write_text(json.dumps(rows, indent=1) + "\n")
for row in rows:
    print(f"{row['problem']:22} {row['baselines']:8} {row['wall_s']:6.1f} s  {row['gate_two']:11} {row['half_widths']} {row['stages_s']}")
P
exit $status
