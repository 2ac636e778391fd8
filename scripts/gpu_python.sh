#!/usr/bin/env bash
# Checks PyTorch support on this machine's GPUs: the worker's times against PyTorch's own timers, and
# reference kernels judged as a .cu file and as a .py file that loads the same source inline.
#
#   scripts/gpu_python.sh OUT [CAPSTONE [PROBLEM]]      # PROBLEM: only this pair, without the timers
#
# Writes OUT/timers.txt (tests/gpu/python_worker.py), the ledgers, and OUT/cu_and_py.json: for each kernel
# both cold medians and their quotient. Uses every visible GPU. Needs nvcc, a python3 on PATH with PyTorch for
# CUDA, and ninja.
#
# Exit codes: 0 every pair agrees within 5 %, and so do the timers · 1 at least one does not · 2 something is
# missing.
set -uo pipefail
out=$(mkdir -p "${1:?usage: scripts/gpu_python.sh OUT [CAPSTONE]}" && cd "$1" && pwd) || exit 2
capstone=$(readlink -f "$(command -v "${2:-capstone}")")
[ -x "$capstone" ] || { echo "error: no ${2:-capstone}" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/gpu_queue.sh
. "$root/scripts/gpu_queue.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NO_COLOR=1
for needed in nvcc ninja; do
  command -v $needed >/dev/null || { echo "error: no $needed on PATH" >&2; exit 2; }
done

# Writes a rung as a module: its launch(), called with the tensors' addresses on PyTorch's stream.
module() {  # RUNG_FILE DECLARATION BODY FORWARD_CLASS
  python3 - "$@" <<'P'
import pathlib, sys

rung, parameters, body, module = sys.argv[1:]
source = pathlib.Path(rung).read_text()
print(f'''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
{source}
torch::Tensor forward({parameters}) {{
{body}
}}
"""
inline = load_inline("rung", cpp_sources="torch::Tensor forward({parameters});", cuda_sources=source, functions=["forward"], extra_cuda_cflags=["-O3"])


{module}''')
P
}
of() { printf '%s\n' "$root"/reference_kernels/*/"$1"/"$2"_*.cu; }
stream='nullptr, at::cuda::getCurrentCUDAStream()'
module "$(of vector_add 03)" "torch::Tensor x, torch::Tensor y" \
  "  auto z = torch::empty_like(x);
  launch(x.data_ptr<float>(), y.data_ptr<float>(), z.data_ptr<float>(), x.numel(), $stream);
  return z;" \
  "class ModelNew(nn.Module):
    def forward(self, x, y):
        return inline.forward(x, y)" > "$work/vector_add.py"
module "$(of softmax 04)" "torch::Tensor x" \
  "  auto y = torch::empty_like(x);
  launch(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1), $stream);
  return y;" \
  "class ModelNew(nn.Module):
    def forward(self, x):
        return inline.forward(x)" > "$work/softmax.py"
module "$(of bias_gelu_layernorm 03)" \
  "torch::Tensor x, torch::Tensor residual, torch::Tensor bias, torch::Tensor gamma, torch::Tensor beta, double eps" \
  "  auto y = torch::empty_like(x);
  launch(x.data_ptr<float>(), residual.data_ptr<float>(), bias.data_ptr<float>(), gamma.data_ptr<float>(), beta.data_ptr<float>(), y.data_ptr<float>(), eps, x.size(0),
         x.size(1), $stream);
  return y;" \
  "class ModelNew(nn.Module):
    def __init__(self, cols, eps=1.0e-5):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols) * 0.5)
        self.norm = nn.LayerNorm(cols, eps=eps)

    def forward(self, x, residual):
        return inline.forward(x, residual, self.bias, self.norm.weight, self.norm.bias, self.norm.eps)" \
  > "$work/bias_gelu_layernorm.py"

task() {  # timers | PROBLEM RUNG: both ways on one GPU
  if [ "$1" = timers ]; then
    python3 "$root/tests/gpu/python_worker.py" >"$out/timers.txt" 2>&1 || touch "$work/timers_differ"
    return
  fi
  local kind project
  for kind in cu py; do
    project=$work/$1-$kind
    "$capstone" init "$1" "$project" --from "$2" >"$out/$1-$kind.txt" 2>&1
    [ $kind = py ] && cp "$work/$1.py" "$project/human/kernel.py" && rm -f "$project/human/kernel.cu"
    (cd "$project" && "$capstone" measure --budget 2 --hidden 1 --baselines eager >>"$out/$1-$kind.txt" 2>&1)
    echo "$1 as .$kind: exit code $?"
    cp "$project/.capstone/ledger.jsonl" "$out/$1-$kind.jsonl"
  done
}
printf '%s\n' "bias_gelu_layernorm 03" "softmax 04" "vector_add 03" timers | grep -- "${3:-}" |
  on_every_gpu task

[ ! -e "$out/timers.txt" ] || cat "$out/timers.txt"
python3 - "$out" <<'P'
import json, pathlib, sys

out, rows = pathlib.Path(sys.argv[1]), []
for problem in ("vector_add", "softmax", "bias_gelu_layernorm"):
    row = {"problem": problem}
    for kind in ("cu", "py"):
        if not (out / f"{problem}-{kind}.jsonl").exists():
            continue
        for line in map(json.loads, (out / f"{problem}-{kind}.jsonl").read_text().splitlines()):
            if line["kind"] == "measurement" and line["body"].get("measured"):
                body = line["body"]
                arm = next(a for a in body["measured"]["arms"] if a["name"].startswith("human"))
                row[kind] = {"median_ms": arm["median_ms"], "execution": body["execution"], "labels": body["labels"], "gate_one": body["gate_one"]}
                row.update({"tool": line["tool"], "time": line["time"], "device": body["environment"]["device"], "torch": body["environment"].get("torch")})
    if "cu" in row and "py" in row:
        row["py_over_cu"] = row["py"]["median_ms"]["point"] / row["cu"]["median_ms"]["point"]
    if len(row) == 1:
        continue
    rows.append(row)
    print(problem, row.get("py_over_cu", "not measured both ways"))
(out / "cu_and_py.json").write_text(json.dumps(rows, indent=1) + "\n")
sys.exit(0 if rows and all(abs(row.get("py_over_cu", 9) - 1) <= 0.05 for row in rows) else 1)
P
pairs=$?
[ $pairs = 0 ] && [ ! -e "$work/timers_differ" ]
