#!/usr/bin/env bash
# gpu_ladders.sh without names tries the ladders that the GPU can run, and names the others. GPU and capstone are
# stand-ins.
#
#   check_ladders_of_a_gpu.sh REPOSITORY
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/nvidia-smi" <<'END'
#!/bin/sh
case $1 in *compute_cap*) echo "$CAPABILITY" ;; *) echo "NVIDIA Stand-in" ;; esac
END
printf '#!/bin/sh\n' > "$work/capstone"
chmod +x "$work/nvidia-smi" "$work/capstone"

tried_on() {  # capability
  CAPABILITY=$1 PATH="$work:$PATH" "$root/scripts/gpu_ladders.sh" "$work/$1" > /dev/null 2> "$work/said" ||
    { cat "$work/said"; exit 1; }
}
expect() { [ -e "$work/$1/$2.txt" ] || { echo "$2 was not tried on a GPU of capability $1"; exit 1; }; }
refuse() {
  [ ! -e "$work/$1/$2.txt" ] || { echo "$2 was tried on a GPU of capability $1"; exit 1; }
  grep -qx "$2: not for this GPU" "$work/said" || { echo "it does not say that $2 was left out"; exit 1; }
}
tried_on 9.0
expect 9.0 sgemm; expect 9.0 gemm_fp8; refuse 9.0 gemm_bf16_blackwell; refuse 9.0 gemm_nvfp4
tried_on 10.0
expect 10.0 gemm_bf16_blackwell; expect 10.0 gemm_nvfp4
