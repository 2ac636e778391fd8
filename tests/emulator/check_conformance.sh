#!/usr/bin/env bash
# Does the emulator agree with the PTX ISA for one class of instructions?
#   check_conformance.sh CLASS COMMAND…    COMMAND builds and runs a .cu: `capstone run`, `capstone-emulate`
set -euo pipefail
class=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 "$(dirname "$0")/ptx_conformance.py" "$class" > "$folder/$class.cu"
status=0
"$@" "$folder/$class.cu" > "$folder/out" 2> "$folder/err" || status=$?
tail -q -n 40 "$folder/out" "$folder/err"
# An instruction that is not known ends with the exit code of a machine without headers, and is no reason to skip.
if grep -q 'not judgeable' "$folder/err"; then exit 1; fi
exit $status
