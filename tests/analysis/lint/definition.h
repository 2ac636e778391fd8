#pragma once
// A small, complete definition, for tests to break in one place.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "harness/base/resources.h"
#include "tests/model/scratch.h"
#include "tests/resources.h"

namespace capstone::testing {

/// y[r, c] = x[r, c] * w[c] + shift.
inline const std::string kYaml = R"(schema: 1
id: scaled
title: Scaled rows
tier: 1
sessions: [L3]
expect: memory-bound
signature:
  - {name: x,     role: input,     dtype: f32, shape: [rows, cols]}
  - {name: w,     role: parameter, dtype: f32, shape: [cols], python: w}
  - {name: y,     role: output,    dtype: f32, shape: [rows, cols]}
  - {name: shift, role: scalar,    dtype: f32, value: 0.5}
sizes:
  check: [{rows: 3, cols: 17}, {rows: 8, cols: 32}]
  vary: {rows: {range: [1, 60]}, cols: {range: [1, 60]}}
  measure: {rows: 4096, cols: 1024}
  emulate: {rows: 8, cols: 32}
tolerance: {rtol: 1.0e-5, atol: 1.0e-6}
cost: {flops: 2 * rows * cols, bytes: 4 * (2 * rows * cols + cols)}
precision: fp32
baselines: [native]
)";

inline const std::string kOracle = R"(#include "problems/oracle.h"
#include <cmath>
extern "C" void capstone_oracle(const CapstoneCase* c, int, const std::int64_t* indices, std::int64_t count, double* value, double* scale) {
  const float* x = static_cast<const float*>(c->parameters[0].data);
  const float* w = static_cast<const float*>(c->parameters[1].data);
  for (std::int64_t i = 0; i < count; ++i) {
    const double product = static_cast<double>(x[indices[i]]) * w[indices[i] % c->sizes[1]];
    value[i] = product + c->parameters[3].scalar;
    scale[i] = std::fabs(product) + std::fabs(c->parameters[3].scalar);
  }
}
)";

inline const std::string kBaseline = R"(#include <cuda_runtime.h>
#include <cstdint>
__global__ void scale(const float* x, const float* w, float* y, float shift, int64_t n, int64_t cols) {
  int64_t i = blockIdx.x * 128LL + threadIdx.x;
  if (i < n) y[i] = x[i] * w[i % cols] + shift;
}
extern "C" void launch(const float* x, const float* w, float* y, float shift, int64_t rows, int64_t cols, void* workspace, cudaStream_t stream) {
  scale<<<(unsigned)((rows * cols + 127) / 128), 128, 0, stream>>>(x, w, y, shift, rows * cols, cols);
}
)";

inline const std::string kReference = R"(import torch
import torch.nn as nn

rows = 4096
cols = 1024


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.w = nn.Parameter(torch.randn(cols))

    def forward(self, x):
        return x * self.w + 0.5


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
)";

/// The definition in its own folder.
class Definition {
 public:
  Definition() {
    write("problem.yaml", kYaml);
    write("oracle.cpp", kOracle);
    write("baseline.cu", kBaseline);
    write("reference.py", kReference);
    write("statement.md", "`x` times `w` plus `shift` gives `y`.\n");
  }
  void write(const std::string& name, const std::string& text) const {
    scratch_.write("scaled/" + name, text);
  }
  /// Replaces the only occurrence of `from` in a text.
  void change(const std::string& name, const std::string& text, const std::string& from,
              const std::string& to) const {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    if (at == std::string::npos) throw std::logic_error("not in the text: " + from);
    write(name, changed.replace(at, from.size(), to));
  }
  std::filesystem::path path() const { return scratch_.path() / "scaled"; }

 private:
  Scratch scratch_;
};

}  // namespace capstone::testing
