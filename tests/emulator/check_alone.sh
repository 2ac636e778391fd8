#!/usr/bin/env bash
# Does the emulator build, run and install without the rest of the repository?
#   check_alone.sh REPOSITORY SCRATCH
# Only harness/emulator is copied to SCRATCH/source, and configured there. Everything that it builds is in
# SCRATCH/build; both folders are kept, so that the next run builds what changed.
# Exit codes: 0 yes · 1 no · 3 not tried: CUDA's headers are missing here.
set -euo pipefail
repository=$1 scratch=$2
source=$scratch/source build=$scratch/build installed=$scratch/installed

# Unchanged files keep their times, so that nothing is built again because of the copy.
mkdir -p "$source" "$build"
for folder in harness/emulator; do
  find "$source" -type f | while read -r file; do
    [ -e "$repository/${file#"$source"/}" ] || rm "$file"
  done
  mkdir -p "$source/$folder"
  cp -a -u "$repository/$folder/." "$source/$folder"
done

status=0
cmake -S "$source/harness/emulator" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_INSTALL_PREFIX="$installed" > "$build/configure.log" 2>&1 || status=$?
if [ $status -ne 0 ]; then
  cat "$build/configure.log"
  grep -q "CUDA's headers were not found" "$build/configure.log" && exit 3
  exit 1
fi
cmake --build "$build" -j "$(nproc)" || exit 1
ctest --test-dir "$build" -L example --output-on-failure --no-tests=error || exit 1

# The installed driver finds its parts, wherever the prefix is.
rm -rf "$installed" "$scratch/moved"
cmake --install "$build" > /dev/null
mv "$installed" "$scratch/moved"
"$scratch/moved/bin/capstone-emulate" --schedule all "$source/harness/emulator/example/sum_of_squares.cu" ||
  exit 1
