#!/usr/bin/env bash
# Makes a package in dist/: capstone-VERSION-MACHINE.tar.gz, a folder that runs anywhere with a C library
# (glibc) as new as this machine's, without root; or, with --deb, capstone_VERSION_ARCHITECTURE.deb for `apt
# install ./capstone_*.deb`.
#   scripts/package.sh [--student] [--deb]
# --student: leaves out what would solve a graded problem (scripts/package_files.sh says which files); the
# name gets "-student".
# Third-party libraries are linked statically or bundled. CUDA programs are built on the target by its own
# nvcc on first use.
set -euo pipefail
cd "$(dirname "$0")/.."
student=OFF deb=no
for word in "$@"; do
  case $word in
    --student) student=ON ;;
    --deb) deb=yes ;;
    *) echo "usage: scripts/package.sh [--student] [--deb]" >&2; exit 2 ;;
  esac
done
scripts/install_deps.sh --package
BUILD=build/package scripts/build.sh -DCAPSTONE_TESTS=OFF -DCAPSTONE_BENCHMARKS=OFF \
  -DCAPSTONE_STATIC_DEPS=ON -DCAPSTONE_STUDENT=$student
mkdir -p dist
if [ $deb = yes ]; then
  cpack --config build/package/CPackConfig.cmake -G DEB -B build/package/cpack >build/package/cpack.log ||
    { tail -n 20 build/package/cpack.log >&2; exit 1; }
  mv build/package/cpack/*.deb dist/
  suffix=; [ $student = ON ] && suffix=-student
  ls -1t dist/capstone${suffix}_*.deb | head -n 1
  exit
fi
version=$(sed -n 's/.*kToolVersion = "\(.*\)".*/\1/p' harness/base/version.h)
name=capstone-$version-$(uname -m)
[ $student = ON ] && name=capstone-student-$version-$(uname -m)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
for component in tool bundled bwrap; do
  cmake --install build/package --prefix "$stage/$name" --component $component >/dev/null
done
cp README.md "$stage/$name/"
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "dist/$name.tar.gz" "$name"
echo "dist/$name.tar.gz ($(du -h "dist/$name.tar.gz" | cut -f1))"
