#!/usr/bin/env bash
# Runs a command; where there is no GPU, or no PyTorch for a Python program, exits 77, which ctest takes for
# "skipped".
set -u
nvidia-smi -L 2>/dev/null | grep -q '^GPU' || { echo "skipped: no GPU here"; exit 77; }
if [ "$1" = python3 ] && ! python3 -c 'import torch; torch.zeros(1, device="cuda")' 2>/dev/null; then
  echo "skipped: python3 has no PyTorch with CUDA"
  exit 77
fi
exec "$@"
