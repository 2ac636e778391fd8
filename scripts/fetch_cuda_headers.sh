#!/usr/bin/env bash
# Fetches CUDA's headers, without a CUDA Toolkit, for the emulated backend; with --cutlass those of CuTe and
# CUTLASS, for kernels that include them. They come from NVIDIA's own packages on PyPI (pinned versions and
# hashes) and go into the user's cache; about 2.4 MB, and 6.4 MB for CUTLASS. Running it again does nothing.
#
#   scripts/fetch_cuda_headers.sh [--cutlass] [CACHE_FOLDER]
#
# CACHE_FOLDER: default $CAPSTONE_CACHE, else ${XDG_CACHE_HOME:-$HOME/.cache}/capstone.
set -euo pipefail

# What is fetched: its name, the folder in the cache, the packages, where headers begin in these (a regular
# expression), some headers, and what else to do when it cannot be fetched.
if [[ ${1:-} == --cutlass ]]; then
  shift
  name=CUTLASS version=4.2.0 folder=cutlass-headers
  requirements='nvidia-cutlass==4.2.0.0 --hash=sha256:f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6'
  begins='^cutlass_library/source/(tools/util/)?include/'
  headers=(cute/tensor.hpp cutlass/cutlass.h cutlass/version.h cutlass/util/packed_stride.hpp)
  instead='name a folder that has them in CAPSTONE_CUTLASS'
else
  name=CUDA version=13.0 folder=cuda-headers
  # The headers are the same on every machine, so the x86-64 package also serves aarch64.
  requirements='nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-crt==13.0.88 --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4'
  begins='^.*?/include/'
  headers=(cuda_runtime.h crt/host_defines.h cuda_fp16.h cuda_bf16.h cuda_fp8.h vector_types.h)
  instead='install the CUDA Toolkit instead'
fi

if [[ ${1:-} == -* || $# -gt 1 ]]; then
  echo "usage: scripts/fetch_cuda_headers.sh [--cutlass] [CACHE_FOLDER]" >&2
  exit 2
fi
cache=${1:-${CAPSTONE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/capstone}}
target=$cache/$folder/$version

complete() {
  local header
  for header in "${headers[@]}"; do
    [[ -e $1/$header ]] || return 1
  done
}

if complete "$target"; then
  echo "$name headers are already in $target"
  exit 0
fi

python=$(command -v python3 || true)
if [[ -z $python ]] || ! "$python" -m pip --version >/dev/null 2>&1; then
  echo "error: python3 with pip is needed to fetch $name's headers" >&2
  echo "  hint: apt install python3-pip, or $instead" >&2
  exit 3
fi

mkdir -p "$cache/$folder"
work=$(mktemp -d "$cache/$folder/fetch-XXXXXX")
trap 'rm -rf "$work"' EXIT
printf '%s\n' "$requirements" >"$work/requirements.txt"

echo "fetching $name $version headers from PyPI …"
if ! "$python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
  --only-binary=:all: \
    --platform manylinux2014_x86_64 --dest "$work/wheels" --requirement "$work/requirements.txt"; then
  echo "error: the download failed" >&2
  echo "  hint: check the network or pip's proxy settings, or $instead" >&2
  exit 3
fi

# A wheel is a zip file, and Python can read zip files everywhere.
"$python" - "$work/wheels" "$work/include" "$begins" <<'PYTHON'
import pathlib
import re
import sys
import zipfile

wheels, include = map(pathlib.Path, sys.argv[1:3])
begins = re.compile(sys.argv[3])
for wheel in sorted(wheels.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            found = begins.match(name)
            if not found or name.endswith("/"):
                continue
            target = include / name[found.end():]
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
echo "$name headers: $target"
