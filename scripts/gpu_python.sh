#!/usr/bin/env bash
# The Python worker on this machine's GPU: alone beside PyTorch's own timers, then as the reference of a measurement, then with the
# same kernel as a .cu and as a .py that loads it inline.
#
#   scripts/gpu_python.sh CAPSTONE OUT_FOLDER [SECONDS]     # CAPSTONE: bin/capstone of an unpacked package, or of a build; 115 s by default
#
# Writes OUT_FOLDER/python.txt (what was said, with times) and the ledgers. What the seconds do not suffice for is named and left out.
# Needs nvcc, a python3 on PATH with PyTorch for CUDA; for the .py also ninja.
set -uo pipefail

capstone=${1:?usage: scripts/gpu_python.sh CAPSTONE OUT_FOLDER [SECONDS]}
out=${2:?usage: scripts/gpu_python.sh CAPSTONE OUT_FOLDER [SECONDS]}
seconds=${3:-115}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
capstone=$(readlink -f "$capstone")
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NO_COLOR=1
begun=$SECONDS
left() { echo $((seconds - (SECONDS - begun))); }
say() { printf '\n=== [%d s] %s\n' $((SECONDS - begun)) "$*"; }
enough() { [ "$(left)" -gt "$1" ] || { echo "left out: $(left) s left"; return 1; }; }

try() {  # NAME PROBLEM RUNG, then options of measure
  local name=$1 problem=$2 rung=$3
  shift 3
  "$capstone" init "$problem" "$work/$name" --from "$rung" 2>&1 | head -n 1
  [ ! -f "$work/$name.py" ] || cp "$work/$name.py" "$work/$name/human/kernel.py"
  (cd "$work/$name" && timeout "$(left)" "$capstone" measure --verbose "$@" 2>&1 | tail -n 30)
  cp "$work/$name/.capstone/ledger.jsonl" "$out/$name.jsonl"
}

main() {
  say environment
  python3 -c "import sys, torch; print(sys.executable, torch.__version__, torch.version.cuda, torch.cuda.get_device_name())" 2>&1 | tail -n 2
  python3 -c "import os, sysconfig; print('Python.h', os.path.exists(sysconfig.get_paths()['include'] + '/Python.h'))"
  command -v ninja nvcc bwrap
  "$capstone" doctor 2>&1 | grep -A1 -E 'GPU|PyTorch|isolation|nvcc'
  say "the worker beside PyTorch's own timers"
  timeout "$(left)" python3 "$root/tests/gpu/python_worker.py" 2>&1 | tail -n 30
  say "a kernel by hand against eager"
  try by_hand bias_gelu_layernorm 3 --budget 2 --hidden 0 --baselines eager
  say "the same addition as .cu (host tier) and as .py"
  enough 30 && try as_cu vector_add 3 --tier host --budget 2 --hidden 0 --baselines eager
  cat > "$work/as_py.py" <<'PY'
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
__global__ void add(const float4* x, const float4* y, float4* z, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 a = x[i], b = y[i];
  z[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__global__ void tail(const float* x, const float* y, float* z, long from, long n) {
  for (long i = from + threadIdx.x; i < n; i += blockDim.x) z[i] = x[i] + y[i];
}
torch::Tensor vadd(torch::Tensor x, torch::Tensor y) {
  auto z = torch::empty_like(x);
  const long n = x.numel(), vectors = n / 4;
  auto stream = at::cuda::getCurrentCUDAStream();
  if (vectors) add<<<(vectors + 255) / 256, 256, 0, stream>>>((const float4*)x.data_ptr<float>(), (const float4*)y.data_ptr<float>(), (float4*)z.data_ptr<float>(), vectors);
  if (n % 4) tail<<<1, 32, 0, stream>>>(x.data_ptr<float>(), y.data_ptr<float>(), z.data_ptr<float>(), vectors * 4, n);
  return z;
}
"""
module = load_inline("vadd", cpp_sources="torch::Tensor vadd(torch::Tensor x, torch::Tensor y);", cuda_sources=source, functions=["vadd"])


class ModelNew(nn.Module):
    def forward(self, x, y):
        return module.vadd(x, y)
PY
  enough 45 && try as_py vector_add 2 --budget 2 --hidden 0 --baselines eager
  say "with torch.compile"
  enough 45 && try compiled softmax 2 --budget 2 --hidden 0
  say done
}
main 2>&1 | tee "$out/python.txt"
