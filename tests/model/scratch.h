#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace capstone::testing {

/// A temporary folder, removed at the end of the test.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "capstone-problems-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file below the folder and creates the folders in between.
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

 private:
  std::filesystem::path path_;
};

/// A definition with every construct the loader knows. Tests change one thing in it.
inline const std::string kDefinition = R"(schema: 1
id: scale_rows
title: Scale the rows
tier: 2
sessions: [L3, W4]
expect: "memory-bound"
edge: one trip
bottleneck: memory
signature:
  - {name: x,     role: input,     dtype: f32,  shape: [rows, 2*cols], init: {normal: {mean: 0, std: 1}}}
  - {name: half,  role: input,     dtype: f16,  shape: [rows], init: {uniform: {low: -1, high: 1}}}
  - {name: index, role: input,     dtype: i32,  shape: [rows], init: {permutation: {of: rows}}}
  - {name: start, role: input,     dtype: i64,  shape: [groups + 1], init: {offsets: {total: rows, segments: groups}}}
  - {name: mask,  role: input,     dtype: u8,   shape: [cols], init: {integer: {min: 0, max: 1}}}
  - {name: kind,  role: input,     dtype: f32,  shape: [cols], init: {choice: [0, 0.5, 1]}}
  - {name: pages, role: input,     dtype: i32,  shape: [rows], init: {generator: page_table}}
  - {name: w,     role: parameter, dtype: bf16, shape: [cols], python: norm.weight}
  - {name: state, role: inout,     dtype: f32,  shape: [rows]}
  - {name: y,     role: output,    dtype: f32,  shape: [rows, cols]}
  - {name: eps,   role: scalar,    dtype: f32,  value: 1.0e-5}
  - {name: width, role: scalar,    dtype: i32,  value: cols / 4}
sizes:
  check:
    - {rows: 4, cols: 4, groups: 2}
    - {rows: 8, cols: 64, groups: 3}
  vary:
    rows: {range: [1, 300]}
    cols: {range: [4, 4096], multiple_of: 4}
    groups: {one_of: [1, 2, 4]}
  measure: {rows: 1024, cols: 4096, groups: 4}
  emulate: {rows: 16, cols: 64, groups: 2}
  published: {paper: {rows: 4096, cols: 65536, groups: 1}}
where: [cols % 4 == 0, rows >= groups && groups > 0]
tolerance: {rtol: 1.0e-4, atol: 1.0e-5}
cost: {flops: 3 * rows * cols, bytes: 4 * (3 * rows * cols + cols)}
precision: fp32
baselines: [native, eager]
arch: sm_80
prepare: false
fast_math: false
graded: true
link: [cublas]
because: {mean: "the mean is the answer when cols is 1"}
)";

}  // namespace capstone::testing
