#!/usr/bin/env bash
# Checks kernels with barriers where the emulator switches threads in another way than on this machine.
#   scripts/check_context_switch.sh aarch64 [PROGRAM…]    both switches of aarch64, cross-compiled and run under qemu;
#                                                         installs the compiler and qemu where they are missing
#   scripts/check_context_switch.sh portable [PROGRAM…]   ucontext, which other processors use, on this machine
# A PROGRAM is a name in tests/emulator/programs (default: all). Each checks itself under every schedule. The script
# builds the emulator alone in $BUILD/context_switch, with the rewriter of $BUILD (default: build/release).
# Exit codes: 0 all pass · 1 one fails · 2 wrong usage · 3 the compiler, qemu or CUDA's headers are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/release}
missing() { printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2; exit 3; }

kind=${1:-}
shift || true
case "$kind" in
  aarch64) switches=(native sve ucontext) ;;
  portable) switches=(ucontext) ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac
programs=""
[ $# -eq 0 ] || programs="($(IFS='|'; echo "$*"))$"

# -DCAPSTONE_EMULATOR_INSTRUMENTED=OFF: the instrumented build switches threads in the same way.
options=(-DCAPSTONE_EMULATOR_INSTRUMENTED=OFF)
if [ "$kind" = aarch64 ]; then
  if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    packages=(g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
    echo "installing a compiler for aarch64, and qemu" >&2
    { "${as_root[@]}" apt-get update -q && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -q --no-install-recommends "${packages[@]}"; } >/dev/null 2>&1 ||
      missing "no compiler for aarch64, or no qemu-aarch64, and apt-get could not install them" \
              "apt-get install ${packages[*]}"
  fi
  options+=(-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++
            "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-cpu;max;-L;/usr/aarch64-linux-gnu")
fi
rewriter=$build/libexec/capstone/capstone-rewrite
[ -x "$rewriter" ] || missing "$rewriter is not built" \
  "cmake --preset release && cmake --build build/release --target capstone-rewrite"
options+=("-DCAPSTONE_EMULATOR_REWRITER=$(readlink -f "$rewriter")")
[ -z "${CAPSTONE_CUDA_HEADERS:-}" ] || options+=("-DCAPSTONE_EMULATOR_CUDA_HEADERS=$CAPSTONE_CUDA_HEADERS")
! command -v ccache >/dev/null || options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

failed=0
for switch in "${switches[@]}"; do
  # With SVE the compiler keeps values in registers that the switch must save, too.
  case $switch in
    native) chosen=() ;;
    sve) chosen=(-DCMAKE_CXX_FLAGS=-march=armv8.2-a+sve) ;;
    ucontext) chosen=(-DCAPSTONE_EMULATOR_UCONTEXT=ON) ;;
  esac
  folder=$build/context_switch/$kind-$switch
  mkdir -p "$folder"
  if ! cmake -S harness/emulator -B "$folder" "${options[@]}" "${chosen[@]}" \
      > "$folder/configure.log" 2>&1; then
    ! grep -q "CUDA's headers were not found" "$folder/configure.log" ||
      missing "CUDA's headers were not found" \
        "scripts/fetch_cuda_headers.sh, or name their folder in CAPSTONE_CUDA_HEADERS"
    cat "$folder/configure.log" >&2
    exit 1
  fi
  cmake --build "$folder" -j "$(nproc)" > "$folder/build.log" 2>&1 || { cat "$folder/build.log" >&2; exit 1; }
  echo "$kind, switch $switch:"
  ctest --test-dir "$folder" -L programs -R "Programs\.$programs" --no-tests=error --output-on-failure ||
    failed=1
done
exit $failed
