#pragma once
// Small, real values for the tests of ledger and project.
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <string>

#include "harness/base/digest.h"
#include "harness/base/resources.h"
#include "harness/model/problem.h"
#include "harness/project/ledger/ledger.h"
#include "tests/base/scratch.h"

namespace capstone::test {

inline constexpr const char* kLaptop = "0123456789abcdef";
inline constexpr const char* kCluster = "fedcba9876543210";

/// A verdict on `version`; if `sources` is given, its source is stored there.
inline Measurement measurement(const std::string& version, double speedup = 1.5,
                               const std::string& backend = "cuda", GateOne gate_one = GateOne::kPassed) {
  Measurement m;
  m.candidate = version.starts_with("attempt-") ? "llm" : "human";
  m.version = version;
  m.reason = "why " + version;
  m.source = "human/kernel.cu";
  m.source_sha256 = sha256_hex("source of " + version);
  m.problem_id = "twice";
  m.backend = *backend_named(backend);
  m.gate_one = gate_one;
  m.build.ok = true;
  m.measured = Measured{};
  m.measured->arms.push_back({"native", "plain", {1, 0.9, 1.1}, 0, 0, {{1, 1.01}, {0.99, 1}}});
  if (backend == "cuda") m.measured->speedup = Interval{speedup, speedup - 0.1, speedup + 0.1};
  return m;
}

inline std::string problem_yaml() {
  return R"(schema: 1
id: twice
title: Twice a matrix
tier: 1
sessions: [L1]
expect: memory-bound, nothing to win
signature:
  - {name: x, role: input, dtype: f32, shape: [rows, cols], init: {normal: {mean: 0, std: 1}}}
  - {name: y, role: output, dtype: f32, shape: [rows, cols]}
  - {name: factor, role: scalar, dtype: f32, value: 2.0}
sizes:
  check: [{rows: 3, cols: 129}]
  vary: {rows: {range: [1, 300]}, cols: {range: [1, 300]}}
  measure: {rows: 1024, cols: 1024}
  emulate: {rows: 8, cols: 8}
tolerance: {rtol: 1.0e-5, atol: 1.0e-6}
cost: {flops: rows * cols, bytes: 8 * rows * cols}
precision: fp32
baselines: [native]
)";
}

/// A complete definition in `folder`, with an editor's backup that is not part of it.
inline void put_problem(const std::filesystem::path& folder) {
  put(folder / "problem.yaml", problem_yaml());
  put(folder / "statement.md", "# Twice a matrix\n\nMultiply every element by `factor`.\n");
  put(folder / "oracle.cpp", "#include \"problems/oracle.h\"\n");
  put(folder / "reference.py", "import torch\n");
  put(folder / "baseline.cu", "extern \"C\" void launch(const float*, float*, float) {}\n");
  put(folder / "statement.md~", "a backup");
}

/// Every file below a folder with its bytes, by path.
inline std::map<std::string, std::string> tree(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    files[entry.path().lexically_relative(folder).generic_string()] =
        entry.is_regular_file() ? slurp(entry) : "";
  return files;
}

inline Resources resources_in(const Scratch& scratch) {
  Resources resources;
  resources.share = scratch / "share";
  resources.cache = scratch / "cache";
  return resources;
}

}  // namespace capstone::test
