#!/usr/bin/env bash
# From a fresh machine to a report: installs what is missing, builds, and runs the main job on real kernels.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

scripts/install_deps.sh
# The emulated backend needs CUDA's headers: those of a Toolkit, else NVIDIA's own from PyPI, fetched while
# the build runs.
headers=
if ! { [ -e /usr/local/cuda/include/cuda_runtime.h ] || command -v nvcc >/dev/null; }; then
  scripts/fetch_cuda_headers.sh >&2 &
  headers=$!
fi
echo "building (first time: some minutes)" >&2
scripts/build.sh -DCAPSTONE_TESTS=OFF -DCAPSTONE_BENCHMARKS=OFF >&2
[ -z "$headers" ] || wait "$headers"
export PATH="$root/build/release/bin:$PATH"

# Every run makes a project of its own: nothing that you may have edited is touched.
mkdir -p build/quickstart
n=1
while [ -e "build/quickstart/run-$n" ]; do n=$((n + 1)); done
project=build/quickstart/run-$n

step() { printf '\n$ capstone %s\n' "$*" >&2; capstone "$@"; }
step init bias_gelu_layernorm "$project" --from 02_fused_block_per_row --member "Quick Start"
cd "$project"
step predict memory --speedup 2 --because "four trips through memory become one"
step measure human -m "one block a row, the row in shared memory" --expect 2x
step explain human --on h100
step llm prompt
# A reply that a language model really gave to this prompt; its prompt is kept beside it.
example="$root/examples/fusion_wins/llm/attempt-1"
model=$(sed -n 's/.*"model": *"\([^"]*\)".*/\1/p' "$example/meta.json" | head -n 1)
step llm add "$example/reply.md" --prompt "$example/prompt.md" --model "${model:-unknown}" || [ $? -eq 1 ]
step report

echo
echo "report:  $PWD/report/worklog.html"
echo "project: $PWD   (write worklog.md, change human/kernel.cu, measure again)"
echo "add to your PATH: export PATH=\"$root/build/release/bin:\$PATH\""
