#!/usr/bin/env bash
# On a GPU machine: grades a cohort with every kind of submission on the GPU, killed once and resumed.
#
#   scripts/gpu_cohort.sh OUT [capstone]
#
# The cohort is made by scripts/make_cohort, each kind once, with one project from a rung of softmax, sgemm
# and transpose each. OUT gets results.jsonl (every result file, one per line), grades.csv, gradebook.csv,
# leaderboard.txt, expected.csv, summary.txt (the output of `grade`), grade.log and claims.txt. The baselines
# are the native ones, which do not need PyTorch.
#
# Exit codes: 0 every submission ended in the expected state · 1 at least one did not · 2 something is
# missing.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
capstone=${2:-capstone}
"$capstone" --version >/dev/null 2>&1 || { echo "error: $capstone does not run" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/scripts/make_cohort" "$work/c" --count 23 || exit 2
extra=0
for start in softmax:04 sgemm:05 transpose:04; do
  extra=$((extra + 1))
  "$capstone" init "${start%:*}" "$work/c/submissions/${start%:*}" --from "${start#*:}" \
    --member "Student of ${start%:*} (id e$extra)" >/dev/null || exit 2
  printf 'Student of %s,e%d\r\n' "${start%:*}" "$extra" >> "$work/c/submissions/roster.csv"
  printf '%s,first version,graded,\r\n' "${start%:*}" >> "$work/c/expected.csv"
done
cp "$work/c/expected.csv" "$out/"
grade=("$capstone" grade "$work/c/submissions" --out "$work/out" --backend cuda --python none --budget 1.5
  --timeout 5 --hidden 2 -j 4)

begun=$SECONDS
"${grade[@]}" > /dev/null 2> "$out/grade.log" &
batch=$!
sleep 25
kill -KILL "$batch" 2>/dev/null && echo "killed after $((SECONDS - begun)) s" | tee -a "$out/grade.log"
wait "$batch" 2>/dev/null || true
"${grade[@]}" > "$out/summary.txt" 2>> "$out/grade.log"
code=$?
echo "exit code $code after $((SECONDS - begun)) s" | tee -a "$out/grade.log"
cp "$work/out/grades.csv" "$out/"
"$capstone" gradebook "$work/out" --format csv > "$out/gradebook.csv"
"$capstone" leaderboard --cohort "$work/out" > "$out/leaderboard.txt"
python3 - "$work/out" "$out" <<'P'
import json, pathlib, sys

cohort, out = map(pathlib.Path, sys.argv[1:])
results = [json.loads(file.read_text()) for file in sorted(cohort.glob("submissions/*/result.json"))]
(out / "results.jsonl").write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in results))
(out / "claims.txt").write_text("".join(f"{r['name']}: {c['candidate']}: {c['agreement']}: {c['text']}\n" for r in results for c in r["claims"]))
timed = sum(any("speedup" in m.get("measured", {}) for m in r["judged"]) for r in results)
print(f"{len(results)} submissions, {sum(bool(r['judged']) for r in results)} judged on the GPU, {timed} of them timed")
P
cat "$out/summary.txt"
"$root/scripts/make_cohort" "$work/c" --check "$work/out"
