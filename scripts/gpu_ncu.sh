#!/usr/bin/env bash
# On a GPU machine: compares the cold median of `capstone measure` with the duration from Nsight Compute for
# the same kernel.
#
#   scripts/gpu_ncu.sh OUT [capstone]
#
# Five kernels of one launch each, at their problems' measured sizes. OUT/ncu.jsonl has one line for each
# (times in µs, device, date), OUT/ncu-*.csv the output of ncu. Agreement means: within max(5 %, 2 µs). ncu
# runs twice with --clock-control none: once without cache control, so that the kernel finds the L2 cache as
# the judge leaves it (full of clean lines: `agrees`), once with ncu's
# --cache-control all, which invalidates it (`agrees_after_invalidation`). A kernel that marks its data
# evict-first is faster with an empty cache: its lines do not displace the lines of earlier kernels.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
capstone=${2:-capstone}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ncu=$(command -v ncu || echo /usr/local/cuda/bin/ncu)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')
[ "$capability" -ge 90 ] && capability=${capability}a
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
: >"$out/ncu.jsonl"

compare() {  # problem rung-number
  local problem=$1 rung=$2 file sizes
  file=$(ls "$root"/reference_kernels/*/"$problem/$rung"_*.cu)
  sizes=$(sed -n 's/^  measure: {\(.*\)}.*/\1/p' "$root/problems/$problem/problem.yaml" | tr -d ' ' |
    tr ':,' '= ')
  "$capstone" init "$problem" "$work/$problem-$rung" --from "$rung" >/dev/null 2>&1 || return 1
  ( cd "$work/$problem-$rung" && "$capstone" predict memory >/dev/null 2>&1
    "$capstone" measure --python none >/dev/null 2>"$out/ncu-$problem-$rung.log" ) || return 1
  "$nvcc" -std=c++17 -O3 -lineinfo -gencode "arch=compute_$capability,code=sm_$capability" \
    "-DPROBLEM_${problem^^}" \
    "-DKERNEL_FILE=\"$file\"" "$root/tests/gpu/kernels_smoke.cu" -o "$work/smoke" 2>/dev/null || return 1
  local control
  for control in none all; do
    # shellcheck disable=SC2086  # one argument per size
    "$ncu" --clock-control none --cache-control $control \
      --metrics gpu__time_duration.sum,launch__grid_size --csv --page raw \
      "$work/smoke" kernel $sizes >"$work/ncu.csv" 2>/dev/null
    grep '^"' "$work/ncu.csv" >"$out/ncu-$problem-$rung-$control.csv"
  done
  python3 - "$problem" "$rung" "$out/ncu-$problem-$rung" "$work/$problem-$rung/.capstone/ledger.jsonl" \
    >>"$out/ncu.jsonl" <<'P'
import csv, json, statistics, sys
problem, rung, table, ledger = sys.argv[1:]
measured = [json.loads(line) for line in open(ledger)]
measured = [r for r in measured if r["kind"] == "measurement"][-1]
body = measured["body"]
arm = body["measured"]["arms"][-1]
ours, hot = arm["median_ms"]["point"] * 1000, arm.get("warm_ms", 0) * 1000
def duration(control):  # median in µs, and launches
    rows = list(csv.reader(open(f"{table}-{control}.csv")))
    head, unit = rows[0], rows[1]
    name, time = head.index("Kernel Name"), head.index("gpu__time_duration.sum")
    scale = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "nsecond": 1e-3, "usecond": 1.0, "msecond": 1e3}[unit[time]]
    ours_only = [r for r in rows[2:] if "smoke::" not in r[name]]  # the harness's own kernels have its namespace
    times = [float(r[time].replace(",", "")) * scale for r in ours_only]
    largest = [t for t in times if t > 0.5 * max(times)]  # the rest are check sizes
    return statistics.median(largest), len(largest)
def agrees(theirs):
    return abs(ours - theirs) <= max(0.05 * theirs, 2)
(theirs, launches), (invalidated, _) = duration("none"), duration("all")
print(json.dumps({"problem": problem, "rung": rung, "capstone_us": round(ours, 3), "capstone_hot_us": round(hot, 3), "ncu_us": round(theirs, 3), "ncu_launches": launches,
                  "difference_us": round(ours - theirs, 3), "allowed_us": round(max(0.05 * theirs, 2), 3), "agrees": agrees(theirs),
                  "ncu_after_invalidation_us": round(invalidated, 3), "agrees_after_invalidation": agrees(invalidated),
                  "execution": body["execution"], "sizes": body["measured"]["sizes"],
                  "device": body["environment"]["device"], "driver": body["environment"]["driver"], "time": measured["time"],
                  "tool": measured["tool"]}))
P
}
for each in "bias_gelu_layernorm 03" "softmax 02" "softmax 04" "conv_bias_scale_relu 03" "sgemm 10"; do
  # shellcheck disable=SC2086  # two arguments
  compare $each || { echo "error: $each could not be compared" >&2; status=1; }
done
cat "$out/ncu.jsonl"
! grep -q '"agrees": false' "$out/ncu.jsonl" || status=1
exit $status
