#!/usr/bin/env bash
# Does the driver say where and why it refuses a file?  check_refusal.sh CAPSTONE-EMULATE
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

expect() {  # EXIT-CODE TEXT: the file on standard input ends with this code and this text
  local status=0
  cat > "$folder/kernel.cu"
  LC_ALL=C "$driver" "$folder/kernel.cu" > "$folder/out" 2>&1 || status=$?
  if [ $status -ne "$1" ] || ! grep -qF "$2" "$folder/out"; then
    printf 'expected exit code %s and "%s", got %s and:\n' "$1" "$2" $status
    cat "$folder/out"
    exit 1
  fi
}

driver=$1
expect 3 'kernel.cu:1: not judgeable on the CPU: ' <<'CU'
__global__ void k() { asm("tcgen05.wait::ld.sync.aligned;"); }
int main() { k<<<1, 1>>>(); }
CU
expect 1 "kernel.cu:1:14: error: " <<'CU'
int main() { x = 1; }
CU
expect 1 'block (0,0,0), thread (3,0,0)' <<'CU'
__global__ void k(int* p) { if (threadIdx.x == 3) *p = 1; }
int main() { k<<<1, 32>>>(nullptr); }
CU
expect 1 "kernel.cu:2: error: kernel 'k' is called without <<<>>>" <<'CU'
__global__ void k(int* p) { *p = 1; }
int main() { k(nullptr); }
CU
expect 0 'seven 7' <<'CU'
#include <cstdio>
__global__ void k() { printf("seven %d\n", 7); }
int main() { k<<<1, 1>>>(); }
CU
