#!/usr/bin/env bash
# Installs from the distribution what building capstone needs, if it is missing.
#   scripts/install_deps.sh [--tests | --package]
# --tests: also what its tests need. --package: also static libraries for a package.
# Debian 12 or newer, Ubuntu 24.04 or newer; root or sudo.
set -euo pipefail

tests=no package=no
[ "${1:-}" = --tests ] && tests=yes
[ "${1:-}" = --package ] && package=yes

build=(g++ cmake ninja-build pkg-config ccache
  libcli11-dev libyaml-cpp-dev libcmark-gfm-dev libcmark-gfm-extensions-dev nlohmann-json3-dev libfmt-dev
  libbenchmark-dev libmuparser-dev libctemplate-dev libssl-dev libarchive-dev libsqlite3-dev libexpected-dev
  libseccomp-dev libdtl-dev libboost-dev libutfcpp-dev libcpp-httplib-dev
  libcurl4-openssl-dev)
run=(bubblewrap gnuplot-nox)
# CUDA's headers are fetched with pip: always for the tests, else only where there is no Toolkit.
if [ $tests = yes ] || ! {
    [ -e /usr/local/cuda/include/cuda_runtime.h ] || command -v nvcc >/dev/null; }; then
  python3 -m pip --version >/dev/null 2>&1 || run+=(python3 python3-pip ca-certificates)
fi
packages=("${build[@]}" "${run[@]}")
# A package links libarchive statically, with what it needs itself.
[ $package = yes ] && packages+=(libacl1-dev libattr1-dev libzstd-dev liblz4-dev libbz2-dev liblzma-dev
  nettle-dev zlib1g-dev)

. /etc/os-release 2>/dev/null || true
case "${ID:-}:${VERSION_ID:-0}" in
  debian:1[2-9]*|debian:[2-9][0-9]*) [ $tests = yes ] &&
    packages+=(libgtest-dev python3-jsonschema python3-yaml chromium python3-torch fish zsh) ;;
  # Ubuntu's chromium is a snap, which neither containers nor scripts can use: the browser test skips there.
  # So do PyTorch's, unless a python3 on PATH has one: Debian's (CPU, 50 MB to fetch) is not packaged there.
  ubuntu:2[4-9].*|ubuntu:[3-9]*) [ $tests = yes ] &&
    packages+=(libgtest-dev python3-jsonschema python3-yaml fish zsh) ;;
  *)
    echo "capstone's scripts support Debian 12+ and Ubuntu 24.04+; this is ${PRETTY_NAME:-an unknown system}. docs/building.md lists the libraries to install by hand." >&2
    exit 3 ;;
esac

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "error: missing packages: ${missing[*]}
  hint: run as root, or install sudo, or ask your administrator for: apt-get install ${missing[*]}" >&2; exit 3; }
  as_root=(sudo)
fi
echo "installing: ${missing[*]}" >&2
log=$(mktemp)
if ! { "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "error: apt-get could not install ${missing[*]} (its whole output: $log)" >&2
  exit 3
fi
rm -f "$log"
