#!/bin/bash
# Assembles rungs of the Blackwell ladders for sm_100a and looks for the instructions that they are about.
#
#   check_machine_code.sh SOURCE_FOLDER
#
# Needs nvcc of CUDA 12.9 or later and nvdisasm (the CUDA Toolkit, or nvidia-cuda-nvdisasm on PyPI): on PATH, next
# to nvcc, or named by NVDISASM. Without them it exits 77 and says what is missing. Judges the last rung of each
# ladder, and all of them where CAPSTONE_WHOLE_LADDERS is set.
set -euo pipefail
rungs=$1/reference_kernels/W5_blackwell

nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
[ -x "$nvcc" ] || { echo "skipped: no nvcc; set CUDA_HOME or PATH"; exit 77; }
nvdisasm=${NVDISASM:-$(command -v nvdisasm || echo "$(dirname "$nvcc")/nvdisasm")}
[ -x "$nvdisasm" ] || { echo "skipped: no nvdisasm; pip install nvidia-cuda-nvdisasm, and set NVDISASM"; exit 77; }
"$nvcc" --list-gpu-code | grep -qx sm_100 || { echo "skipped: $nvcc does not know sm_100"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check RUNG INSTRUCTION=HOW_OFTEN …: at least so often; 0: never
check() {
  local rung=$1 found instruction least
  shift
  "$nvcc" -std=c++17 -gencode=arch=compute_100a,code=sm_100a -cubin -o "$work/rung.cubin" "$rungs/$rung.cu"
  "$nvdisasm" -c "$work/rung.cubin" > "$work/rung.sass"
  for what in "$@"; do
    instruction=${what%=*} least=${what#*=}
    found=$(grep -cE "[[:space:]]${instruction//./\\.}([.[:space:]]|\$)" "$work/rung.sass" || true)
    if [ "$least" = 0 ] && [ "$found" != 0 ] || [ "$found" -lt "$least" ]; then
      echo "$rung: $instruction $found times, expected ${least/#0/0, not one}"
      failed=1
    fi
  done
  echo "$rung: $# instructions looked for"
}

# A tile is multiplied by four instructions, by one thread; warps read it by LDTM. The pair's are 2CTA, and it
# tells both blocks; no rung from 02 on multiplies by warps.
if [ -n "${CAPSTONE_WHOLE_LADDERS:-}" ]; then
  check gemm_bf16_blackwell/01_tma UTMALDG.2D=2 HMMA.16816.F32.BF16=64 UTCHMMA=0
  check gemm_bf16_blackwell/02_tcgen05 UTMALDG.2D=2 UTCHMMA=4 UTCBAR=2 LDTM.x32=1 HMMA=0
  check gemm_bf16_blackwell/03_specialised UTMALDG.2D=2 UTCHMMA=4 UTCBAR=2 LDTM.x32=1 HMMA=0
  check gemm_bf16_blackwell/04_pipelined_epilogue UTCHMMA=4 LDTM.x32=1 UTMASTG.2D=1 HMMA=0
fi
check gemm_bf16_blackwell/05_pair UTMALDG.2D.2CTA=2 UTCHMMA.2CTA=4 UTCBAR.2CTA.MULTICAST=2 \
  UTCATOMSWS.2CTA=1 LDTM.x32=1 UTMASTG.2D=1 HMMA=0
check gemm_nvfp4/01_block_scaled UBLKCP=2 UTCCP=2 UTCOMMA.4X=1 LDTM.x32=1 UTCHMMA=0 HMMA=0
exit $failed
