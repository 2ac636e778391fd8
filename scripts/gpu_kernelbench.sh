#!/usr/bin/env bash
# On a GPU machine: judges each KernelBench problem with a copy of its own reference, which must be correct
# and TIE.
#
#   scripts/gpu_kernelbench.sh OUT PROBLEMS [CAPSTONE [SECONDS]]
#
# PROBLEMS: a folder like KernelBench's (level1/19_ReLU.py). SECONDS: timing per candidate, default 1. Uses
# every visible GPU, one problem on each at a time. OUT gets LEVEL_PROBLEM.log (the tool's output) and .jsonl
# (its records), and the summary kernelbench.json: for each problem the sizes, the medians, the verdict,
# device, version and labels. Problems that OUT already has are not judged again, so rerun the script to
# resume.
#
# Exit codes: 0 every problem was correct and TIE · 1 at least one was not, or could not be judged · 2
# something is missing.
set -uo pipefail
out=$(mkdir -p "${1:?usage: scripts/gpu_kernelbench.sh OUT PROBLEMS [CAPSTONE [SECONDS]]}" &&
  cd "$1" && pwd) || exit 2
problems=$(cd "${2:?which problems?}" && pwd) || exit 2
capstone=$(readlink -f "$(command -v "${3:-capstone}")")
[ -x "$capstone" ] || { echo "error: no ${3:-capstone}" >&2; exit 2; }
budget=${4:-1}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/gpu_queue.sh
. "$root/scripts/gpu_queue.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NO_COLOR=1

# shellcheck disable=SC2317  # on_every_gpu calls it
judge() {  # FILE
  local file=$1 level name own
  level=$(basename "$(dirname "$file")") name=$(basename "$file" .py)
  own=$work/$level/$name
  [ ! -s "$out/${level}_$name.jsonl" ] || return 0
  mkdir -p "$own/$level" && cp "$file" "$own/$level/"
  "$capstone" kernelbench run --self --problems "$own" --out "$own/results" --baselines eager \
    --budget "$budget" >"$out/${level}_$name.log" 2>&1
  local code=$?
  if [ -s "$own/results/records.jsonl" ]; then cp "$own/results/records.jsonl" "$out/${level}_$name.jsonl"; fi
  echo "${level}/$name: $(grep -oE 'sample 0: .*' "$out/${level}_$name.log" || grep -m 1 -E '^(error|left out|not )' "$out/${level}_$name.log" || echo "exit code $code"), $SECONDS s"
}

find "$problems" -name '*.py' | sort >"$work/files"
[ -s "$work/files" ] || { echo "error: no problem in $problems" >&2; exit 2; }
on_every_gpu judge <"$work/files"

python3 - "$out" "$(wc -l <"$work/files")" <<'P'
import json, pathlib, sys

out, wanted = pathlib.Path(sys.argv[1]), int(sys.argv[2])
rows = []
for file in sorted(out.glob("level*.jsonl")):
    for line in map(json.loads, file.read_text().splitlines()):
        body = line["measurement"]
        measured = body.get("measured") or {}
        rows.append({"problem": file.stem, "problem_digest": body["problem_digest"], "tool": body["environment"]["tool"], "device": body["environment"].get("device"),
                     "torch": body["environment"].get("torch"), "gate_one": body["gate_one"], "gate_two": body["gate_two"], "reason": body.get("gate_two_reason", ""),
                     "speedup": measured.get("speedup"), "sizes": measured.get("sizes"), "labels": body["labels"], "seconds": body.get("seconds"),
                     "arms": [{"name": "copy" if i == len(measured["arms"]) - 1 else arm["name"], "median_ms": arm["median_ms"]} for i, arm in enumerate(measured.get("arms", []))]})
(out / "kernelbench.json").write_text(json.dumps(rows, indent=1) + "\n")
correct, tie = sum(row["gate_one"] == "passed" for row in rows), sum(row["gate_two"] == "tie" for row in rows)
print(f"{len(rows)} of {wanted} judged, {correct} correct, {tie} TIE")
sys.exit(0 if tie == wanted else 1)
P
