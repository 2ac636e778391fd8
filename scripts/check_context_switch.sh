#!/usr/bin/env bash
# Checks that kernels with barriers run correctly with the context switches of other machines.
#
#   scripts/check_context_switch.sh aarch64 [PROGRAM…]     both switches, cross-compiled, under qemu
#   scripts/check_context_switch.sh portable [PROGRAM…]    ucontext, for all other processors, on this machine
#
# "aarch64" installs the compiler and qemu if they are missing. A PROGRAM is a name in tests/emulator/programs
# (default: all); each program checks itself, under every schedule. Files of a build are taken from
# build/release, or from $BUILD. Compiled objects are stored in $BUILD/context_switch.
#
# Exit codes: 0 all pass · 1 at least one fails · 2 usage · 3 the compiler, qemu or CUDA's headers are
# missing.
set -euo pipefail
cd "$(dirname "$0")/.."
emulator=harness/emulator build=${BUILD:-build/release}
missing() { printf 'error: %s\n  hint: %s\n' "$1" "$2" >&2; exit 3; }

kind=${1:-}
shift || true
case "$kind" in
  aarch64) compiler=aarch64-linux-gnu-g++ switches=(native sve ucontext) ;;
  portable) compiler=g++ switches=(ucontext) ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
programs=("$@")
if [ ${#programs[@]} -eq 0 ]; then
  for source in tests/emulator/programs/*.cu; do programs+=("$(basename "$source" .cu)"); done
fi

run=(env)
if [ "$kind" = aarch64 ]; then
  if ! command -v $compiler >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    echo "installing a compiler for aarch64, and qemu" >&2
    { "${as_root[@]}" apt-get update -q && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user; } >/dev/null 2>&1 ||
      missing "no compiler for aarch64 or no qemu-aarch64, and apt-get could not install them" "run: apt-get install g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
  fi
  run=(qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu)
fi
rewriter=$build/libexec/capstone/capstone-rewrite
[ -x "$rewriter" ] || missing "$rewriter is not built" "run: cmake --preset release && cmake --build build/release --target capstone-rewrite"
headers=""
for folder in "${CAPSTONE_CUDA_HEADERS:-}" /usr/local/cuda/include "${XDG_CACHE_HOME:-$HOME/.cache}/capstone/cuda-headers/include"; do
  [ -n "$folder" ] && [ -e "$folder/cuda_runtime.h" ] && { headers=$folder; break; }
done
[ -n "$headers" ] || missing "CUDA's headers were not found" "run scripts/fetch_cuda_headers.sh, or set CAPSTONE_CUDA_HEADERS to their folder"

ccache=()
command -v ccache >/dev/null && ccache=(ccache)
# The same flags as harness/runtime/build/emulated.cpp uses for a candidate and
# harness/emulator/CMakeLists.txt for the runtime.
flags=(-g1 -w -fno-pie -fno-pic)
[ "$kind" = portable ] && [ "$(uname -m)" = x86_64 ] && flags+=(-fcf-protection=none)
candidate_flags=(-std=gnu++17 -O2 -fno-strict-aliasing -fno-math-errno -fno-trapping-math -fno-delete-null-pointer-checks -fstack-clash-protection)
failed=0
for switch in "${switches[@]}"; do
  # With SVE the compiler keeps values in registers that the switch must also save.
  case $switch in ucontext) chosen=(-DCAPSTONE_EMULATOR_UCONTEXT=1) ;; sve) chosen=(-march=armv8.2-a+sve) ;; *) chosen=() ;; esac
  folder=$build/context_switch/$kind-$switch
  mkdir -p "$folder"
  objects=()
  compile() {  # SOURCE FLAG…
    local object=$folder/$(basename "$1" .cpp).o
    objects+=("$object")
    # True if any file of the emulator is newer, because its headers include each other.
    if [ ! -e "$object" ] || [ -n "$(find $emulator -newer "$object" \( -name '*.h' -o -path "$1" \) -print -quit)" ]; then
      "${ccache[@]}" $compiler "${flags[@]}" "${chosen[@]}" "${@:2}" -c "$1" -o "$object"
    fi
  }
  for source in $emulator/runtime/*.cpp $emulator/worker/program.cpp; do
    case $source in
      */cuda_*.cpp) compile "$source" -std=gnu++17 -O1 -I$emulator -isystem "$headers" ;;
      *) compile "$source" -std=c++20 -O2 -I. ;;
    esac
  done
  passed=0
  for name in "${programs[@]}"; do
    to=$folder/$name
    shims=(-DCAPSTONE_EMULATED=1 -DCAPSTONE_CUDA_ARCH=900 -isystem $emulator/include -isystem "$headers" -include $emulator/include/capstone_emulator.h)
    $compiler "${flags[@]}" "${chosen[@]}" "${candidate_flags[@]}" -E -x c++ "${shims[@]}" "tests/emulator/programs/$name.cu" -o "$to.ii"
    "$rewriter" --program "$to.ii" "$to.rewritten.ii"
    $compiler "${flags[@]}" "${chosen[@]}" "${candidate_flags[@]}" -x c++-cpp-output -c "$to.rewritten.ii" -o "$to.o"
    $compiler -no-pie "$to.o" "${objects[@]}" -Wl,-u,capstone_emu_program -o "$to" -lpthread
    for schedule in forward reverse random:7 warp; do
      status=0
      CAPSTONE_SCHEDULE=$schedule timeout 300 "${run[@]}" "$to" >"$to.out" 2>"$to.err" || status=$?
      if [ $status -eq 0 ] && [ "$(tail -n 1 "$to.out")" = PASS ]; then
        passed=$((passed + 1))
      else
        echo "FAILED $kind $switch: $name under $schedule, exit code $status" >&2
        tail -q -n 5 "$to.out" "$to.err" >&2
        failed=1
      fi
    done
  done
  echo "$kind, switch $switch: $passed of $((4 * ${#programs[@]})) runs pass"
done
exit $failed
