#!/usr/bin/env bash
# For the first person with a B200: runs what the emulator says of tcgen05 on the GPU, and writes the answers.
#
#   scripts/gpu_blackwell.sh OUT_FOLDER
#   scripts/gpu_blackwell.sh --compile OUT_FOLDER     # only assembles everything for sm_100a: no GPU needed
#
# 1. The conformance programs of the emulator (tests/emulator/programs/tensor_memory*.cu, cluster_launch_control.cu):
#    and the program that tests/emulator/ptx_conformance.py writes for tcgen05. Each checks itself and prints PASS.
# 2. The programs of tests/gpu/blackwell: each asks one of the questions of docs/design/blackwell_questions.md, and
#    prints what the GPU did next to what the emulator does.
# 3. The rungs of the Blackwell ladders: compute-sanitizer where there is one, then `capstone ladder --record`.
#
# Writes OUT_FOLDER/answers.txt and OUT_FOLDER/b200.json. A program that hangs is stopped after a minute and says so.
# Needs nvcc of CUDA 12.9 or later and python3; for step 3 a build of capstone (scripts/build.sh). Exit status: 0 all that ran
# agrees with the emulator, 1 something differs (that is an answer, too), 3 something is missing.
set -euo pipefail

compile_only=
if [ "${1:-}" = --compile ]; then compile_only=yes; shift; fi
out=${1:?usage: scripts/gpu_blackwell.sh [--compile] OUT_FOLDER}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
answers=$out/answers.txt

nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
[ -x "$nvcc" ] || { echo "error: no nvcc; set CUDA_HOME or PATH" >&2; exit 3; }
"$nvcc" --list-gpu-code | grep -qx sm_100 || { echo "error: $nvcc does not know sm_100; CUDA 12.9 or later" >&2; exit 3; }
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
flags=(-std=c++17 -O2 "-gencode=arch=compute_100a,code=sm_100a")

different=0
if [ -z "$compile_only" ]; then
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1)
  [ "$capability" = 10.0 ] || { echo "error: this GPU's compute capability is '$capability', not 10.0; --compile needs no GPU" >&2; exit 3; }
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tee "$answers"
  "$nvcc" --version | tail -n 1 | tee -a "$answers"
fi

python3 "$root/tests/emulator/ptx_conformance.py" tcgen05 > "$build/ptx_tcgen05.cu"
for source in "$root"/tests/emulator/programs/{tensor_memory*,cluster_launch_control}.cu "$build/ptx_tcgen05.cu" \
              "$root"/tests/gpu/blackwell/*.cu; do
  name=$(basename "$source" .cu)
  "$nvcc" "${flags[@]}" -o "$build/$name" "$source" || { echo "error: $source does not build" >&2; exit 3; }
  if [ -n "$compile_only" ]; then echo "$name: assembled"; continue; fi
  { echo "== $name"; status=0
    timeout 60 "$build/$name" || status=$?
    case $status in 0) ;; 124) echo "it did not end within a minute" ;; *) echo "exit status $status" ;; esac
  } 2>&1 | tee -a "$answers" > "$build/said"
  cat "$build/said"
  grep -qE 'FAIL|differs|did not end|exit status' "$build/said" && different=1
done

if [ -n "$compile_only" ]; then
  for rung in "$root"/reference_kernels/W5_blackwell/gemm_*/*.cu; do
    "$nvcc" "${flags[@]}" -cubin -o "$build/rung.cubin" "$rung"
    echo "$(basename "$(dirname "$rung")")/$(basename "$rung" .cu): assembled"
  done
  exit 0
fi

if command -v compute-sanitizer > /dev/null || [ -x "$(dirname "$nvcc")/compute-sanitizer" ]; then
  "$root/scripts/gpu_sanitize.sh" "$out" W5_blackwell/gemm_ | tee -a "$answers" || different=1
fi
capstone=${CAPSTONE:-$root/build/release/bin/capstone}
if [ -x "$capstone" ]; then
  for problem in gemm_bf16_blackwell gemm_nvfp4; do
    "$capstone" ladder "$problem" --record "$out/b200.json" 2>&1 | tee -a "$answers" || different=1
  done
else
  echo "the rungs were not timed: no $capstone; build it with scripts/build.sh, or set CAPSTONE" | tee -a "$answers"
fi
echo "answers: $answers"
exit $different
