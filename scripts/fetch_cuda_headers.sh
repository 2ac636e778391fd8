#!/usr/bin/env bash
# Fetches CUDA's headers, without a CUDA Toolkit, for the emulated backend. They come from NVIDIA's own
# packages on PyPI (pinned versions and hashes) and go into the user's cache; about 2.4 MB. Running it again
# does nothing.
#
#   scripts/fetch_cuda_headers.sh [CACHE_FOLDER]
#
# CACHE_FOLDER: default $CAPSTONE_CACHE, else ${XDG_CACHE_HOME:-$HOME/.cache}/capstone.
set -euo pipefail

# The headers are the same on every machine, so the x86-64 package also serves aarch64.
requirements='nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-crt==13.0.88 --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4'

cache=${1:-${CAPSTONE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/capstone}}
target=$cache/cuda-headers/13.0

complete() {
  local header
  for header in cuda_runtime.h crt/host_defines.h cuda_fp16.h cuda_bf16.h cuda_fp8.h vector_types.h; do
    [[ -e $1/$header ]] || return 1
  done
}

if complete "$target"; then
  echo "CUDA headers are already in $target"
  exit 0
fi

python=$(command -v python3 || true)
if [[ -z $python ]] || ! "$python" -m pip --version >/dev/null 2>&1; then
  echo "error: python3 with pip is needed to fetch CUDA's headers" >&2
  echo "  hint: apt install python3-pip, or install the CUDA Toolkit instead" >&2
  exit 3
fi

mkdir -p "$cache/cuda-headers"
work=$(mktemp -d "$cache/cuda-headers/fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
printf '%s\n' "$requirements" >"$work/requirements.txt"

echo "fetching CUDA 13.0 headers from PyPI …"
if ! "$python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
  --only-binary=:all: \
    --platform manylinux2014_x86_64 --dest "$work/wheels" --requirement "$work/requirements.txt"; then
  echo "error: the download failed" >&2
  echo "  hint: check the network or pip's proxy settings, or install the CUDA Toolkit instead" >&2
  exit 3
fi

# A wheel is a zip file, and Python can read zip files everywhere.
"$python" - "$work/wheels" "$work/include" <<'PYTHON'
import pathlib
import sys
import zipfile

wheels, include = map(pathlib.Path, sys.argv[1:])
marker = "/include/"
for wheel in sorted(wheels.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if marker not in name or name.endswith("/"):
                continue
            target = include / name.split(marker, 1)[1]
            if not target.resolve().is_relative_to(include.resolve()):
                sys.exit(f"error: {wheel.name} contains a path outside of its folder: {name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(name))
PYTHON

if ! complete "$work/include"; then
  echo "error: the packages do not contain the expected headers" >&2
  exit 3
fi
rm -rf "$target"
mv "$work/include" "$target"
echo "CUDA headers: $target"
