#!/bin/sh
# Installs a build tree, builds the consumer against the installed package, and judges two kernels with it.
# usage: check.sh SOURCE_DIR BUILD_DIR
set -eu
source=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
page=$source/docs/how-to/link-libcapstone.md

echo "the page shows the files as they are"
for file in main.cpp CMakeLists.txt; do
  sed -n "/^<!-- $file -->\$/,/^\`\`\`\$/p" "$page" | sed '1d;/^```/d' > "$scratch/shown"
  diff -u "$source/tests/consumer/$file" "$scratch/shown"
done

cmake --install "$build" --prefix "$scratch/prefix" --component tool > "$scratch/log" ||
  { tail "$scratch/log"; exit 1; }
cmake --install "$build" --prefix "$scratch/prefix" --component library > "$scratch/log" ||
  { tail "$scratch/log"; exit 1; }
cmake -S "$source/tests/consumer" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix"
cmake --build "$scratch/build"

cat > "$scratch/right.cu" <<'END'
#include <cuda_runtime.h>
#include <cstdint>
__global__ void add(const float* x, const float* y, float* z, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
extern "C" void launch(const float* x, const float* y, float* z, int64_t n, void*, cudaStream_t stream) {
  add<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(x, y, z, n);
}
END
sed 's/x\[i\] + y\[i\]/x[i] - y[i]/' "$scratch/right.cu" > "$scratch/wrong.cu"
cd "$scratch"
build/judge_kernel vector_add right.cu | grep 'gate one: PASS'
build/judge_kernel vector_add wrong.cu > verdict && { echo "a wrong kernel passed"; exit 1; }
grep 'gate one: WRONG' verdict
