#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "harness/base/files.h"
#include "harness/project/project.h"

namespace capstone {

/// A small project in a temporary folder, removed with the test.
class ScratchProject : public ::testing::Test {
 protected:
  ScratchProject() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    base = fs::path(::testing::TempDir()) / ("capstone-" + std::to_string(::getpid()) + "-" + info->name());
    fs::remove_all(base);
    project.root = base / "project";
    project.config.members = {{"Anna Example", "s1234567", "anna@example.org"}};
    project.config.problem_id = "scale_rows";
    project.config.problem_digest = std::string(64, 'd');
    for (const auto& [path, text] : kFiles) put(path, text);
  }
  ~ScratchProject() override { fs::remove_all(base); }

  void put(const std::string& path, std::string_view text) {
    fs::path target = project.root / path;
    fs::create_directories(target.parent_path());
    auto done = write_file_atomic(target, text);
    ASSERT_TRUE(done) << render(done.error());
  }

  const std::map<std::string, std::string> kFiles = {
      {"capstone.yaml", "problem: scale_rows\n"},
      {"problem/problem.yaml", "schema: 1\n"},
      {"problem/launch.h", "#pragma once\n"},
      {"human/kernel.cu", "extern \"C\" void launch() {}\n"},
      {"human/tile.cuh", "#pragma once\n"},
      {"human/notes.md", "Ideas.\n"},
      {"llm/attempt-1/prompt.md", "Write a kernel.\n"},
      {"llm/attempt-1/reply.md", "Here.\n"},
      {"llm/attempt-1/kernel.cu", "// one\n"},
      {"llm/attempt-1/meta.json", "{}\n"},
      {"llm/attempt-2/kernel.cu", "// two\n"},
      {"report/worklog.html", "<p>hello</p>\n"},
      {"worklog.md", "# The problem and the plan\n"},
      {"README.md", "Next: capstone measure\n"},
      {".capstone/ledger.jsonl", "{\"seq\":0,\"time\":\"2026-03-01T09:30:00Z\",\"kind\":\"init\"}\n"},
      {".capstone/sources/abc.cu", "extern \"C\" void launch() {}\n"}};
  fs::path base;
  Project project;
};

}  // namespace capstone
