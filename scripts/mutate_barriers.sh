#!/bin/bash
# Deletes each barrier of each reference kernel, one at a time, and checks whether the instrumented build
# reports it.
#
#   scripts/mutate_barriers.sh [--only TEXT] [--from TEXT] [--most N]
#   scripts/mutate_barriers.sh --changes TEXT [--page FILE]
#
# The second form makes the changes of tests/mutants/changes.txt whose line holds TEXT, and judges each by gate
# one. --page renews their rows of the table in FILE (docs/design/emulator.md).
#
# Prints a table. Fails if a mutant that tests/mutants/survivors.txt does not explain passes, or if an intact
# kernel is reported. Sizes: some of the problem's check sizes, and those in tests/mutants/sizes.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -d build/release ] || cmake --preset release -DCAPSTONE_TESTS=ON
cmake --build build/release --target mutate_barriers > /dev/null
exec build/release/bin/mutate_barriers "$@"
