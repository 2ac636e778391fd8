#!/usr/bin/env bash
# Times the possible tile sizes of the last rung of the sgemm ladder on this machine's GPU.
#
#   scripts/tune_sgemm.sh OUT_FOLDER [m=4096 k=4096 n=4096]
#
# Builds 10_autotuned.cu once per variant (tile m, tile n, depth, warp m, warp n, stages, blocks per
# multiprocessor) with tests/gpu/kernels_smoke.cu, in parallel, then checks and times one after the other.
# Writes OUT_FOLDER/sgemm.csv, best first. Use the best variant for `Tuned`. Needs nvcc, nvidia-smi and a GPU;
# exits 1 if no variant is correct.
set -euo pipefail

out=${1:?usage: scripts/tune_sgemm.sh OUT_FOLDER [m=4096 k=4096 n=4096]}
shift
[ $# -gt 0 ] || set -- m=4096 k=4096 n=4096
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$out"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
nvcc=$(command -v nvcc || true)
[ -n "$nvcc" ] || nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
[ -x "$nvcc" ] || { echo "error: no nvcc; set CUDA_HOME or PATH" >&2; exit 3; }
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')
[ -n "$capability" ] || { echo "error: nvidia-smi names no GPU" >&2; exit 3; }
[ "$capability" -ge 90 ] && capability=${capability}a
export flags="-std=c++17 -O3 -gencode arch=compute_$capability,code=sm_$capability" root build nvcc

cat > "$build/variants" <<'VARIANTS'
128,128,8,64,64,3,2
128,128,8,64,64,4,2
128,128,16,64,64,2,2
128,128,16,64,64,3,2
128,128,16,64,64,4,2
128,128,16,128,32,3,2
128,128,16,32,128,3,2
128,128,32,64,64,2,2
128,128,32,64,64,3,2
128,256,8,64,64,4,1
128,256,16,64,64,3,1
128,256,16,64,64,4,1
128,256,32,64,64,3,1
256,128,8,64,64,4,1
256,128,16,64,64,3,1
256,128,16,64,64,4,1
256,128,32,64,64,3,1
64,256,16,64,64,3,2
256,64,16,64,64,3,2
64,128,16,32,64,3,3
128,64,16,64,32,3,3
128,128,16,32,64,3,1
128,128,16,64,32,3,1
VARIANTS

# shellcheck disable=SC2317  # xargs calls it
build_one() {
  local folder=$build/${1//,/_} rung=$root/reference_kernels/L5_gemm_ladder_two/sgemm/10_autotuned.cu
  mkdir "$folder"
  sed "s/^using Tuned = .*/using Tuned = Shape<$1>;/" "$rung" > "$folder/kernel.cu"
  # shellcheck disable=SC2086  # the flags are a list
  "$nvcc" $flags -DPROBLEM_SGEMM "-DKERNEL_FILE=\"$folder/kernel.cu\"" "$root/tests/gpu/kernels_smoke.cu" \
    -o "$folder/smoke" || true
}
export -f build_one
xargs -P "$(nproc)" -L 1 bash -c 'build_one "$@"' build_one < "$build/variants"

while read -r variant; do
  program=$build/${variant//,/_}/smoke
  [ -x "$program" ] || { echo "error: variant $variant does not build" >&2; continue; }
  timeout 120 "$program" "${variant//,/ }" "$@" || echo "error: variant $variant fails" >&2
done < "$build/variants" | grep ',pass,' | sort -t, -k4 -n > "$build/sorted" || true
[ -s "$build/sorted" ] || { echo "error: no variant is correct" >&2; exit 1; }
{ echo "tile m, tile n, depth, warp m, warp n, stages, blocks;check;worst error;median ms;min ms;GB/s;% of copy;TFLOP/s"
  sed 's/,/;/g; s/ /, /g' "$build/sorted" | cut -d';' -f1-8; } | tee "$out/sgemm.csv"
