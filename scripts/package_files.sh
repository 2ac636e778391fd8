#!/usr/bin/env bash
# The files of the repository that a package carries, one a line.
#   scripts/package_files.sh [--student]
# --student leaves out what would solve a problem that counts for a grade (`graded: true` in its
# problem.yaml): every rung of its ladders but the first, which is where `init --from` may begin, the labs made
# from those rungs, the ladders' own pages, and the finished capstones of it.
set -euo pipefail
cd "$(dirname "$0")/.."
student=no
case ${1:-} in
  "") ;;
  --student) student=yes ;;
  *) echo "usage: scripts/package_files.sh [--student]" >&2; exit 2 ;;
esac
files=$(git ls-files problems reference_kernels templates rubric examples harness tests/corpus \
  'tests/gpu/records/*/pytorch.json' docs/reference/handbook_numbers.md)
if [ $student = yes ]; then
  leave=$(mktemp)
  trap 'rm -f "$leave"' EXIT
  for definition in $(grep -l '^graded: *true' problems/*/problem.yaml); do
    id=$(basename "$(dirname "$definition")")
    grep -E "^reference_kernels/[^/]*/$id/" <<< "$files" | grep -vE '/01_[^/]*$' >> "$leave" || true
    for ladder in $(grep -lE "^problem: *$id *$" reference_kernels/*/*/ladder.yaml || true); do
      grep -F "$(dirname "$ladder")/" <<< "$files" >> "$leave" || true
    done
    grep -E "^examples/machine/$id/" <<< "$files" >> "$leave" || true
    for finished in $(grep -lE "^ +id: *[\"']?$id[\"']? *$" examples/*/capstone.yaml 2>/dev/null || true); do
      grep -F "$(dirname "$finished")/" <<< "$files" >> "$leave" || true
    done
  done
  for lab in $(grep '^reference_kernels/labs/' <<< "$files"); do
    rung=reference_kernels/$(sed -n 's/^rung: //p' "$lab")
    grep -qxF "$rung" "$leave" && printf '%s\n' "$lab" >> "$leave"
  done
  # They tell of the examples, marks and all.
  grep -q '^examples/' "$leave" &&
    printf '%s\n' examples/README.md examples/machine/README.md examples/agreed_marks.csv >> "$leave"
  files=$(grep -vxFf "$leave" <<< "$files")
fi
printf '%s\n' "$files"
