#!/usr/bin/env bash
# On a GPU machine: judges rung 6 of nvfp4_gemv and vLLM's Marlin (fp4 weights, bf16 vector) in one run, at
# each published size. Marlin wants its weights repacked, which nvfp4_gemv does not allow; so the problem is
# judged in a form whose tensors are all parameters (tests/gpu/nvfp4_gemv_parameters.py), and Marlin gets its
# vector dequantised, too.
#
#   scripts/gpu_marlin.sh OUT [CAPSTONE [SECONDS]]
#
# SECONDS: timing per candidate, default 2. vLLM's compiled kernels must be importable as the package vllm
# (PYTHONPATH). OUT gets a ledger (marlin.SIZE.jsonl), the printed table (.txt) and the log of each size.
#
# Exit codes: 0 every size was judged · 1 at least one was not.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
capstone=$(readlink -f "$(command -v "${2:-capstone}")")
budget=${3:-2}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Every input a parameter of the same name, prepare() allowed.
definition() {  # FOLDER l m k
  mkdir -p "$1"
  cp "$root/problems/nvfp4_gemv/oracle.cpp" "$1/"
  { sed '/^class Model/,$d' "$root/problems/nvfp4_gemv/reference.py"
    cat "$root/tests/gpu/nvfp4_gemv_parameters.py"; } >"$1/reference.py"
  sed -e 's/^id: .*/id: nvfp4_gemv_prepared/' \
      -e 's/{name: \([a-z]*\),\( *\)role: input,\(.*\)}$/{name: \1,\2role: parameter,\3, python: \1}/' \
      -e "s/^  measure: .*/  measure: {l: $2, m: $3, k: $4}/" -e '/^  published:/,/^$/d' \
      -e 's/^baselines: .*/baselines: [lib:marlin, eager]/' \
      "$root/problems/nvfp4_gemv/problem.yaml" >"$1/problem.yaml"
  echo 'prepare: true' >>"$1/problem.yaml"
}

# A kernel with launch() as such a problem declares it, and a prepare() that has nothing to do.
kernel() {  # KERNEL FILE
  sed -e 's|void\* /\*workspace\*/|const void* /*prepared*/, &|' "$root/$1" >"$2"
  cat >>"$2" <<'P'

extern "C" size_t prepared_bytes(int64_t, int64_t, int64_t) { return 0; }
extern "C" void prepare(const __nv_fp4x2_e2m1*, const __nv_fp8_e4m3*, const __nv_fp4x2_e2m1*,
                        const __nv_fp8_e4m3*, int64_t, int64_t, int64_t, void*, cudaStream_t) {}
P
}

status=0
while read -r name l m k; do
  folder=$work/$name
  definition "$folder/nvfp4_gemv_prepared" "$l" "$m" "$k"
  kernel problems/nvfp4_gemv/baseline.cu "$folder/nvfp4_gemv_prepared/baseline.cu"
  kernel reference_kernels/W5_blackwell/nvfp4_gemv/06_ring.cu "$folder/rung.cu"
  { "$capstone" init "$folder/nvfp4_gemv_prepared" "$folder/p" --from "$folder/rung.cu" \
      >"$out/marlin.$name.log" 2>&1 &&
      cd "$folder/p" &&
      "$capstone" measure human -m "rung 6 of nvfp4_gemv" --budget "$budget" \
        >"$out/marlin.$name.txt" 2>>"$out/marlin.$name.log"; } || status=1
  cp "$folder/p/.capstone/ledger.jsonl" "$out/marlin.$name.jsonl" 2>/dev/null || status=1
  echo "$name: done after ${SECONDS} s"
done < <(sed -n 's/^    \([a-z]*\): {l: \([0-9]*\), m: \([0-9]*\), k: \([0-9]*\)}$/\1 \2 \3 \4/p' \
           "$root/problems/nvfp4_gemv/problem.yaml")
exit "$status"
