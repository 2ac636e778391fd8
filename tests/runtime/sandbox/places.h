#pragma once
// The kinds of isolation that a test goes through, and processes found by a word on their command line.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "harness/runtime/sandbox/sandbox.h"
#include "tests/base/scratch.h"
#include "tests/resources.h"

namespace capstone::test {

inline Resources sandbox_resources(const std::string& isolation) {
  Resources r = suite_resources();
  r.isolation = isolation;
  return r;
}

/// A test for each of "bubblewrap", "landlock" (and "none" where it says so); skipped where the machine has
/// not got it.
class InPlace : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!sandbox_.isolated() && std::string(GetParam()) != "none") GTEST_SKIP() << sandbox_.description();
  }
  Resources resources_ = sandbox_resources(GetParam());
  Sandbox sandbox_ = Sandbox::detect(resources_);
};

inline std::string name_of_place(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

/// How many living processes have `word` on their command line.
inline int processes_with(const std::string& word) {
  int count = 0;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", code)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    try {
      if (slurp(entry.path() / "cmdline").find(word) != std::string::npos) ++count;
    } catch (const std::ios_base::failure&) {
      // The process ended while its command line was read.
    }
  }
  return count;
}

inline bool gone_soon(const std::string& word) {
  for (int i = 0; i < 300 && processes_with(word); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return processes_with(word) == 0;
}

}  // namespace capstone::test
