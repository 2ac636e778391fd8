#!/usr/bin/env bash
# On a GPU machine: compares the counts of `capstone explain` with those of Nsight Compute.
#
#   scripts/gpu_counts.sh OUT [capstone]
#
# Every file of tests/gpu/counts/kernels is explained by the emulator and profiled on the GPU, with the same
# launches. OUT/counts.json is the record (for each kernel and counter: emulated, measured, difference),
# OUT/counts-raw.tar.gz the raw data:
#
#   tests/gpu/counts/compare.py FOLDER RECORD.json     # repeats the comparison from the unpacked archive, on
#   any machine
#
# Exit codes: 0 all agree within 2 % · 1 at least one does not · 2 something is missing.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
capstone=${2:-capstone}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
counts=$root/tests/gpu/counts
ncu=$(command -v ncu || echo /usr/local/cuda/bin/ncu)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missing() { printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2; exit 2; }
"$ncu" --version >/dev/null 2>&1 || missing "Nsight Compute (ncu) was not found" "put it on PATH"
"$nvcc" --version >/dev/null 2>&1 || missing "nvcc was not found" "put it on PATH"
"$capstone" --version >/dev/null 2>&1 ||
  missing "$capstone does not run" "scripts/gpu_counts.sh OUT PATH/TO/capstone"
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')
[ -n "$capability" ] || missing "no NVIDIA GPU" "run this on a machine with one"
[ "$capability" -ge 90 ] && capability=${capability}a

# ncu refuses a whole list because of one unknown name. The last metrics help to find the cause of a
# difference.
known=$("$ncu" --query-metrics 2>/dev/null | awk '{print $1}')
metrics=thread_inst_executed_true,inst_executed
for name in l1tex__t_{requests,sectors}_pipe_lsu_mem_global_op_{ld,st,red,atom} \
  l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{ld,st,atom} \
  l1tex__data_pipe_lsu_wavefronts_mem_shared \
  smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared{,_op_ld,_op_st} \
  smsp__inst_executed_op_shared_{ld,st,atom}; do
  if ! grep -qx l1tex__t_requests_pipe_lsu_mem_global_op_ld <<<"$known" || grep -qx "$name" <<<"$known"; then
    metrics+=,$name.sum
  else
    echo "note: this version of ncu does not have $name" >&2
  fi
done

python3 - "$("$capstone" --version)" "$("$ncu" --version | grep -i '^version')" \
  "$("$nvcc" --version | grep -o 'V[0-9.]*')" \
  "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)" \
  >"$work/machine.json" <<'E'
import datetime, json, sys
tool, ncu, nvcc, gpu = sys.argv[1:]
device, driver = gpu.rsplit(", ", 1)
print(json.dumps({"tool": tool, "device": device, "driver": driver, "ncu": ncu, "nvcc": nvcc, "date": datetime.date.today().isoformat()}))
E

# First everything that needs no GPU, in parallel; then the profiler, alone on the GPU.
prepare() {  # file name
  "$capstone" explain "$1" --problem "$counts/problem" --format json \
    >"$work/$2.emulated.json" 2>"$work/$2.log" ||
    { cat "$work/$2.log" >&2; missing "$2.cu cannot be explained" "see above"; }
  "$nvcc" -std=c++17 -O3 -lineinfo -gencode "arch=compute_$capability,code=sm_$capability" \
    "-DKERNEL_FILE=\"$1\"" "$counts/launch.cu" -o "$work/launch-$2" ||
    missing "$2.cu does not compile" "see above"
}
preparing=()
for file in "$counts"/kernels/*.cu; do
  prepare "$file" "$(basename "$file" .cu)" &
  preparing+=($!)
done
for process in "${preparing[@]}"; do wait "$process" || exit 2; done
for file in "$counts"/kernels/*.cu; do
  name=$(basename "$file" .cu)
  "$ncu" --clock-control none --section SourceCounters --metrics "$metrics" \
    --force-overwrite -o "$work/$name" "$work/launch-$name" >"$work/$name.log" 2>&1 ||
    { cat "$work/$name.log" >&2; missing "ncu could not profile $name.cu" "see above"; }
  "$ncu" --import "$work/$name.ncu-rep" --csv --page raw --print-units base >"$work/$name.raw.csv"
  "$ncu" --import "$work/$name.ncu-rep" --csv --page source --print-source sass >"$work/$name.source.csv"
done
rm -f "$work"/launch-* "$work"/*.ncu-rep
tar -C "$work" -czf "$out/counts-raw.tar.gz" .
python3 "$counts/compare.py" "$work" "$out/counts.json"
