#!/usr/bin/env bash
# On a GPU machine: judges the last rung of every ladder against the arms that its problem names (PyTorch
# eager and compiled, libraries), with capstone itself.
#
#   scripts/gpu_record.sh OUT [CAPSTONE [SECONDS [TEXT [ARMS]]]]
#
# SECONDS: timing per candidate, default 2. TEXT: a regular expression; only matching problems are judged.
# ARMS: in place of those that the problem names, as of measure --baselines: sdpa-cudnn,lib:fa3
# Each problem is judged at its measured size (transpose) and at each of its published sizes
# (transpose/large), as a copy of the problem that differs only in that size. TEXT '^transpose$' selects the
# former, '^transpose/' the latter. Uses every visible GPU, one problem on each at a time. OUT gets one ledger
# per problem (transpose.jsonl, transpose.large.jsonl), the printed table (.txt), doctor.txt, and the summary
# pytorch.json: for each the medians of the arms, the speedup and the verdict, with device, date and version.
#
# Exit codes: 0 every problem was judged · 1 at least one was not.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
capstone=$(readlink -f "$(command -v "${2:-capstone}")")
budget=${3:-2}
only=${4:-}
arms=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/gpu_queue.sh
. "$root/scripts/gpu_queue.sh"
"$capstone" doctor >"$out/doctor.txt" 2>&1

# what_to_judge: prints problem, or problem/published size, one per line
what_to_judge() {
  local definition problem
  for definition in "$root"/problems/*/problem.yaml; do
    problem=$(basename "$(dirname "$definition")")
    echo "$problem"
    sed -n '/^  published:/,/^[^ ]/s|^    \([a-z0-9_]*\): {.*|'"$problem"'/\1|p' "$definition"
  done
}

# at_published PROBLEM SIZE FOLDER: copies the problem to FOLDER with that size as the measured one
#
# shellcheck disable=SC2317  # on_every_gpu calls it
at_published() {
  local size
  cp -r "$root/problems/$1" "$3"
  size=$(sed -n "/^  published:/,/^[^ ]/s|^    $2: \({.*}\).*|\1|p" "$3/problem.yaml")
  sed -i "s|^  measure: {.*|  measure: $size|; /^  published:/,/^[^ ]/{/^  published:\|^    /d}" \
    "$3/problem.yaml"
  [ -n "$size" ] && grep -qxF "  measure: $size" "$3/problem.yaml"
}

# shellcheck disable=SC2317  # on_every_gpu calls it
record() {  # problem, or problem/published size
  local problem=${1%/*} name=${1/\//.} definition rung
  local rungs=("$root"/reference_kernels/*/"${1%/*}"/*.cu)  # from this source tree, whatever tree capstone
                                                            # was built from
  rung=$(basename "${rungs[-1]}" .cu)
  definition=$problem
  if [ "$1" != "$problem" ]; then
    definition=$work/definitions/$name/$problem
    mkdir -p "$work/definitions/$name"
    at_published "$problem" "${1#*/}" "$definition" ||
      { echo "$1: its definition does not have that size"; return 1; }
  fi
  "$capstone" init "$definition" "$work/$name" --from "${rungs[-1]}" >"$out/$name.log" 2>&1 ||
    { echo "$1: init failed"; return 1; }
  ( cd "$work/$name" &&
    "$capstone" measure human -m "reference kernel $rung" --budget "$budget" ${arms:+--baselines "$arms"} \
      >"$out/$name.txt" 2>>"$out/$name.log" )
  local code=$?
  cp "$work/$name/.capstone/ledger.jsonl" "$out/$name.jsonl"
  echo "$1 ($rung): exit code $code, $((SECONDS)) s"
  return "$code"
}

mapfile -t problems < <(what_to_judge | grep -E -- "$only")
[ "${#problems[@]}" -gt 0 ] || { echo "error: no problem matches '$only'" >&2; exit 1; }
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
                     "time": line["time"], "device": body["environment"].get("device"), "execution": body["execution"], "gate_one": body["gate_one"], "gate_two": body["gate_two"],
                     "speedup": measured.get("speedup"), "dirty_speedup": measured.get("dirty_speedup"), "percent_of_peak": measured.get("percent_of_peak"), "bound_by": measured.get("bound_by"), "sizes": measured.get("sizes"),
                     "arms": [{k: v for k, v in arm.items() if k in ("name", "label", "median_ms")} for arm in measured["arms"] if arm["name"] != "A/A"]})
(out / "pytorch.json").write_text(json.dumps(rows, indent=1) + "\n")
for row in rows:
    print(f"{row['problem']:28} {row['gate_two']:12} " + "  ".join(f"{arm['name']} {1e3 * arm['median_ms']['point']:.0f} us" for arm in row["arms"]))
P
exit $status
