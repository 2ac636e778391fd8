#!/bin/bash
# Deletes each barrier of each reference kernel, one at a time, and asks the instrumented build whether it notices.
# Usage: scripts/mutate_barriers.sh [--only TEXT] [--from TEXT] [--most N]
# Prints a table; fails when a mutant escapes that tests/mutants/survivors.txt does not explain, or an intact kernel is accused.
# Sizes: some of the problem's check sizes, and what tests/mutants/sizes.txt adds.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -d build/release ] || cmake --preset release -DCAPSTONE_TESTS=ON
cmake --build build/release --target mutate_barriers > /dev/null
exec build/release/bin/mutate_barriers "$@"
