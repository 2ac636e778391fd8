#!/usr/bin/env bash
# Prepares the container: builds, and judges a kernel. Also runs by hand in any bare Debian 12:
#   docker run -it -v "$PWD:/src" -w /src debian:12 .devcontainer/create.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/quickstart.sh
scripts/install_deps.sh --tests
