#!/usr/bin/env bash
# Checks and times the baselines and rungs of the first four problems on this machine's GPU, without the rest
# of capstone.
#
#   scripts/gpu_kernels.sh OUT_FOLDER [--sanitize]
#
# Builds tests/gpu/kernels_smoke.cu once per kernel file, in parallel, then runs the programs one after the
# other (each kernel is timed alone on the GPU). Writes OUT_FOLDER/kernels.csv, OUT_FOLDER/kernels.txt (a
# table with the ratio to the baseline and to the previous rung), and OUT_FOLDER/kernels.log with the
# compiler's output. Exits 1 if a kernel is wrong or does not build. With
# --sanitize every rung also runs under compute-sanitizer: scripts/gpu_sanitize.sh. Needs nvcc, nvidia-smi and
# a GPU. cuDNN is used for the convolution's baseline if it is found.
set -euo pipefail

out=${1:?usage: scripts/gpu_kernels.sh OUT_FOLDER}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || { echo "error: no nvcc; set CUDA_HOME or PATH" >&2; exit 3; }

# "9.0" -> 90a: from 9.0 on, the suffix enables the instructions that only this chip has.
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')
[ -n "$capability" ] || { echo "error: nvidia-smi names no GPU" >&2; exit 3; }
[ "$capability" -ge 90 ] && capability=${capability}a
export flags="-std=c++17 -O3 -lineinfo -gencode arch=compute_$capability,code=sm_$capability -Xcompiler -Wall"

# cuDNN: next to the toolkit, from the distribution, or from NVIDIA's Python package.
find_cudnn() {
  local toolkit include library
  toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  for include in "$toolkit/include" /usr/include /usr/include/x86_64-linux-gnu \
                 $(python3 -c 'import nvidia.cudnn as c; print(list(c.__path__)[0] + "/include")' \
                 2>/dev/null || true); do
    [ -f "$include/cudnn.h" ] || continue
    for library in "$include/../lib" "$include/../lib64" /usr/lib/x86_64-linux-gnu; do
      [ -f "$library/libcudnn.so.9" ] || continue
      library=$(cd "$library" && pwd)
      ln -sf "$library/libcudnn.so.9" "$build/libcudnn.so"  # the Python package has no file name to link with
      echo "-DCAPSTONE_USE_CUDNN -I$include -L$build -lcudnn -Xlinker -rpath=$library"
      return
    done
  done
}
cudnn_flags=$(find_cudnn)
export root build nvcc cudnn_flags

# One line per kernel: problem, file, in the order of the table.
jobs=$build/jobs
while read -r problem folders; do
  echo "$problem problems/$problem/baseline.cu"
  for folder in $folders; do
    (cd "$root" && for rung in "reference_kernels/$folder/$problem"/*.cu; do echo "$problem $rung"; done)
  done
done > "$jobs" <<'PROBLEMS'
bias_gelu_layernorm W4_serving
softmax L8_attention
conv_bias_scale_relu W6_deepseek_and_ai
sgemm L4_gemm_ladder_one L5_gemm_ladder_two
PROBLEMS

# shellcheck disable=SC2317  # xargs calls it
build_one() {
  local problem=$1 file=$2 libraries=""
  if [[ $file == problems/* ]]; then
    [ "$problem" = sgemm ] && libraries="-lcublas"
    [ "$problem" = conv_bias_scale_relu ] && libraries="${cudnn_flags:--lcublas}"
  fi
  # shellcheck disable=SC2086  # the flags are lists
  "$nvcc" $flags "-DPROBLEM_${problem^^}" "-DKERNEL_FILE=\"$root/$file\"" "$root/tests/gpu/kernels_smoke.cu" \
    $libraries -o "$build/$(tr / . <<< "$file")" 2>&1 | sed "s|^|$file: |"
}
export -f build_one
xargs -P "$(nproc)" -L 1 bash -c 'build_one "$@"' build_one < "$jobs" > "$out/kernels.log" 2>&1 || true

# The measure size from the problem's definition: "rows=16384 cols=4096".
measure_size() {
  sed -n 's/^  measure: {\(.*\)}.*/\1/p' "$root/problems/$1/problem.yaml" 2>/dev/null | tr -d ' ' |
    tr ':,' '= '
}

failed=0
csv=$out/kernels.csv
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 > "$out/kernels.txt"
first=1
while read -r problem file; do
  program=$build/$(tr / . <<< "$file")
  name=$(basename "$file" .cu)
  if [ ! -x "$program" ]; then
    echo "error: $file does not build; see $out/kernels.log" >&2
    failed=1
    continue
  fi
  if [ "$first" = 1 ]; then
    echo "problem,$("$program")" > "$csv"
    first=0
  fi
  # shellcheck disable=SC2046  # one argument per size
  line=$(timeout 60 "$program" "$name" $(measure_size "$problem") 2>> "$out/kernels.log") || failed=1
  echo "$problem,${line:-$name,FAIL,,,,,,,\"did not finish\"}" >> "$csv"
done < "$jobs"

awk -F, '
  NR == 1 { printf "%-22s %-26s %-5s %10s %9s %7s %9s %10s %10s\n", "problem", "kernel", "check", "median ms", "GB/s",
            "% copy", "TFLOP/s", "x baseline", "x last"; next }
  function ratio(a, b) { return a > 0 && b > 0 ? sprintf("%.2f", a / b) : "-" }
  { label = $10; for (i = 11; i <= NF; ++i) label = label "," $i  # the last field may hold commas
    gsub(/"/, "", label)
    if ($2 == "baseline") { base = $5; last = 0 }
    printf "%-22s %-26s %-5s %10.4f %9.1f %7.1f %9.2f %10s %10s  %s\n", $1, $2, $3, $5, $7, $8, $9, ratio(base, $5),
           ratio(last, $5), label
    if ($2 != "baseline") last = $5 }' "$csv" | tee -a "$out/kernels.txt"
if [ "${2:-}" = --sanitize ]; then
  "$root/scripts/gpu_sanitize.sh" "$out" || failed=1
fi
exit "$failed"
