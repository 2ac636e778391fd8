#pragma once
// A workspace with a project in a temporary folder.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"
#include "harness/model/problem.h"
#include "harness/project/init.h"
#include "harness/workflows/workspace.h"
#include "rubric/worklog.h"
#include "tests/resources.h"

namespace capstone::workflows::test {

/// z = x + y, correct.
inline constexpr const char* kRightKernel = R"(#include <cuda_runtime.h>
#include <cstdint>
__global__ void add(const float* x, const float* y, float* z, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
extern "C" void launch(const float* x, const float* y, float* z, int64_t n, void*, cudaStream_t stream) {
  add<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>(x, y, z, n);
}
)";

inline std::string wrong_kernel() {
  std::string text = kRightKernel;
  return text.replace(text.find("x[i] + y[i]"), 11, "x[i] - y[i]");
}

/// A project of vector_add in `cwd`, and what the workflows reported.
class ProjectTest : public testing::Test {
 protected:
  void SetUp() override {
    workspace_.resources = capstone::test::suite_resources_and_headers();
    workspace_.state = place_.path() / "state";
    workspace_.home = "/home/ada";
    workspace_.user = "ada";
    workspace_.host = "engine";
    workspace_.cwd = place_.path() / "project";
    InitOptions options;
    options.problem = find_problem(workspace_.resources.problems(), "vector_add").value();
    options.directory = workspace_.cwd;
    options.members = {{"Ada Lovelace", "1815", "ada@example.org"}};
    options.worklog_text = worklog_scaffold(options.problem);
    options.state = workspace_.state;
    auto made = init_project(options, workspace_.resources);
    ASSERT_TRUE(made) << render(made.error());
    write_kernel(kRightKernel);
  }

  void write_kernel(const std::string& text) {
    ASSERT_TRUE(write_file_atomic(workspace_.cwd / "human" / "kernel.cu", text));
  }

  ProgressSink sink() {
    return [this](const Progress& progress) {
      (progress.kind == Progress::Kind::kNote ? notes_ : steps_).push_back(progress.text);
    };
  }

  static JudgeOptions quick() {
    JudgeOptions options;
    options.backend = Backend::kEmulated;
    options.quick = true;
    options.hidden_cases = 1;
    options.python = "none";
    options.timeout_seconds = 60;
    return options;
  }

  bool noted(const std::string& part) const {
    for (const std::string& note : notes_)
      if (note.find(part) != std::string::npos) return true;
    return false;
  }

  const ScratchFolder place_{fs::path(testing::TempDir()) / "workflow"};
  Workspace workspace_;
  std::vector<std::string> steps_, notes_;
};

}  // namespace capstone::workflows::test
