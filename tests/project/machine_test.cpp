#include "harness/project/ledger/machine.h"

#include <gtest/gtest.h>

#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

bool is_id(const std::string& id) {
  return id.size() == 16 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

TEST(MachineId, IsMadeOnceAndKept) {
  Scratch scratch;
  auto first = machine_id(scratch / "state/capstone");
  ASSERT_TRUE(first);
  EXPECT_TRUE(is_id(*first)) << *first;
  EXPECT_EQ(machine_id(scratch / "state/capstone").value(), *first);
  EXPECT_NE(machine_id(scratch / "other").value(), *first) << "random, not taken from the host";
}

TEST(MachineId, AFileThatHoldsNoIdIsReplaced) {
  Scratch scratch;
  put(scratch / "machine-id", "laptop-of-ada\n");
  auto id = machine_id(scratch.path());
  ASSERT_TRUE(id);
  EXPECT_TRUE(is_id(*id));
}

TEST(MachineId, ProcessesThatStartTogetherAgree) {
  Scratch scratch;
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i)
    children.push_back(in_other_process([&, i] {
      auto id = machine_id(scratch / "state");
      if (!id) return 1;
      put(scratch / ("seen-" + std::to_string(i)), *id);
      return 0;
    }));
  for (pid_t child : children) EXPECT_EQ(exit_code_of(child), 0);
  const std::string id = machine_id(scratch / "state").value();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(slurp(scratch / ("seen-" + std::to_string(i))), id);
}

TEST(MachineId, AStateFolderThatCannotBeMadeIsAnError) {
  Scratch scratch;
  put(scratch / "file", "");
  EXPECT_FALSE(machine_id(scratch / "file/state"));
}

}  // namespace
}  // namespace capstone
