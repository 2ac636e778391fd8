#!/usr/bin/env bash
# dist/capstone-<version>-<machine>.tar.gz: a folder that runs anywhere with a glibc as new as this machine's, without root and
# without our libraries. CUDA programs are built on the target by its own nvcc on first use.
#   scripts/package.sh [--student]
# --student: dist/capstone-student-…, without what would solve a problem that counts for a grade (scripts/package_files.sh says which files).
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/package_files.sh "$@" >/dev/null   # refuses what it does not know before anything is built
scripts/install_deps.sh
version=$(sed -n 's/.*kToolVersion = "\(.*\)".*/\1/p' harness/base/version.h)
name=capstone-${1:+student-}$version-$(uname -m)
build=build/package
mkdir -p build
cmake --preset release -B "$build" -DCAPSTONE_TESTS=OFF -DCAPSTONE_BENCHMARKS=OFF -DCAPSTONE_STATIC_DEPS=ON \
  -DCMAKE_EXE_LINKER_FLAGS="-static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,-rpath,'\$ORIGIN/../lib'" \
  -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH='$ORIGIN/../lib' >"build/package-configure.log" 2>&1 || { tail -n 20 build/package-configure.log >&2; exit 1; }
cmake --build "$build" -j "$(nproc)"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
top=$stage/$name
mkdir -p "$top"/{bin,lib,libexec,share/capstone/include}
cp "$build/bin/capstone" "$top/bin/"
cp -r "$build/libexec/capstone" "$top/libexec/"
scripts/package_files.sh "$@" | tar --transform 's,^tests/,,' -cf - -T - | tar -xf - -C "$top/share/capstone"
cp README.md "$top/"
# Headers that the on-the-spot CUDA builds include.
cp -r /usr/include/nlohmann "$top/share/capstone/include/"
# Libraries for which the distribution has no archive travel beside the program.
system='^(linux-vdso|ld-linux|libc\.|libm\.|libdl|libpthread|librt|libgcc_s|libstdc\+\+)'
ldd "$top/bin/capstone" | awk '$3 ~ /^\// {print $1, $3}' | while read -r soname path; do
  [[ $soname =~ $system ]] || cp -L "$path" "$top/lib/$soname"
done
# bubblewrap, with what it links.
if bwrap=$(command -v bwrap); then
  mkdir -p "$top/libexec/capstone/bwrap"
  cp -L "$bwrap" "$top/libexec/capstone/bwrap/"
  ldd "$bwrap" | awk '$3 ~ /^\// {print $1, $3}' | while read -r soname path; do
    [[ $soname =~ $system ]] || cp -L "$path" "$top/libexec/capstone/bwrap/$soname"
  done
fi
mkdir -p dist
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "dist/$name.tar.gz" "$name"
echo "dist/$name.tar.gz ($(du -h "dist/$name.tar.gz" | cut -f1))"
