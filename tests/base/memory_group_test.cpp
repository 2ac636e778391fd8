#include "harness/base/memory_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/base/subprocess.h"
#include "tests/base/scratch.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;
using test::put;

// A hierarchy as the kernel shows it: user.slice is not ours, app.slice is delegated, run.scope is our own.
class Hierarchy : public ::testing::Test {
 protected:
  void SetUp() override {
    put(mount_ / "cgroup.subtree_control", "cpu memory pids\n");
    put(mount_ / "app.slice/cgroup.subtree_control", "memory pids\n");
    put(mount_ / "app.slice/cgroup.procs", "");
    put(mount_ / "app.slice/run.scope/cgroup.subtree_control", "\n");
    put(mount_ / "app.slice/run.scope/cgroup.procs", "");
  }
  test::Scratch scratch_;
  fs::path mount_ = scratch_ / "cgroup";
};

TEST_F(Hierarchy, TheNearestFolderThatHandsMemoryOnIsTaken) {
  const std::string own = "4:memory:/elsewhere\n0::/app.slice/run.scope\n";
  EXPECT_EQ(MemoryGroup::delegated(mount_, own), mount_ / "app.slice");
  put(mount_ / "app.slice/run.scope/cgroup.subtree_control", "pids memory\n");
  EXPECT_EQ(MemoryGroup::delegated(mount_, own), mount_ / "app.slice/run.scope");
}

TEST_F(Hierarchy, WithoutOneThereIsNone) {
  put(mount_ / "app.slice/cgroup.subtree_control", "pids\n");
  const std::string own = "0::/app.slice/run.scope\n";
  EXPECT_EQ(MemoryGroup::delegated(mount_, own), "") << "the root has no cgroup.procs that we may write to";
  EXPECT_EQ(MemoryGroup::delegated(mount_, "4:memory:/app.slice/run.scope\n"), "") << "version 1";
  EXPECT_EQ(MemoryGroup::delegated({}, own), "");
  EXPECT_FALSE(MemoryGroup::create({}, 1 << 20));
}

TEST_F(Hierarchy, AFolderThatIsNoCgroupMakesNoGroupAndIsLeftAsItWas) {
  EXPECT_FALSE(MemoryGroup::create(mount_ / "app.slice", 1 << 20)) << "no memory.max appears in it";
  for (const auto& entry : fs::directory_iterator(mount_ / "app.slice"))
    EXPECT_FALSE(entry.path().filename().string().starts_with("capstone-")) << entry.path();
}

// Whoever notices first, the kernel or the judge: the child ends for the same reason.
TEST(MemoryGroup, TheKernelCountsAndEndsWhatGoesOverTheLimit) {
  const fs::path& delegated = MemoryGroup::delegated();
  if (delegated.empty()) GTEST_SKIP() << "no cgroup with the memory controller is delegated to this user";
  ProcessSpec spec;
  spec.argv = {"sh", "-c", "head -c 1000000000 /dev/zero | tail -n 1 > /dev/null; sleep 5"};
  spec.max_memory = 64u << 20;
  const auto result = run_process(spec);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->end, ProcessResult::End::kTooMuchMemory);
  for (const auto& entry : fs::directory_iterator(delegated))
    EXPECT_FALSE(entry.path().filename().string().starts_with("capstone-" + std::to_string(::getpid()) + "-"))
        << "its group is gone: " << entry.path();
}

}  // namespace
}  // namespace capstone
