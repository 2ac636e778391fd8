#!/usr/bin/env bash
# Does a program that checks itself pass under every schedule?
#   check_program.sh CAPSTONE-EMULATE FILE.cu [RUN WITH…]
set -euo pipefail
driver=$1 source=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$driver" -o "$folder/program" "$source"
failed=0
for schedule in forward reverse random:7 warp; do
  status=0
  CAPSTONE_SCHEDULE=$schedule "$@" "$folder/program" > "$folder/out" 2> "$folder/err" || status=$?
  if [ $status -ne 0 ] || [ "$(tail -n 1 "$folder/out")" != PASS ]; then
    echo "FAILED: $(basename "$source") under schedule $schedule, exit code $status"
    tail -q -n 5 "$folder/out" "$folder/err"
    failed=1
  fi
done
exit $failed
