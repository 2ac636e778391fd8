#include "harness/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "tests/base/scratch.h"

namespace capstone {
namespace {

using test::exit_code_of;
using test::in_other_process;
using test::Scratch;

TEST(Files, ReadsAllBytesAndNamesWhatIsMissing) {
  Scratch scratch;
  const std::string bytes("\0\xFF\r\n end", 8);
  test::put(scratch / "a", bytes);
  EXPECT_EQ(read_file(scratch / "a").value(), bytes);

  auto missing = read_file(scratch / "none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().where, (scratch / "none").string());
  EXPECT_EQ(missing.error().hint, "check the path");
  EXPECT_FALSE(read_file(scratch.path())) << "a folder is not a file";
}

TEST(Files, AFileOverTheLimitIsAnErrorAndOneOfThatSizeIsNot) {
  Scratch scratch;
  test::put(scratch / "a", std::string(100, 'x'));
  EXPECT_TRUE(read_file(scratch / "a", 100));
  EXPECT_FALSE(read_file(scratch / "a", 99));
}

TEST(WriteFileAtomic, ReplacesTheWholeFileAndLeavesNothingElse) {
  Scratch scratch;
  test::put(scratch / "a", "a much longer text that was here before");
  ASSERT_TRUE(write_file_atomic(scratch / "a", "new"));
  EXPECT_EQ(test::slurp(scratch / "a"), "new");
  EXPECT_EQ(test::entries_in(scratch.path()), 1u);
}

TEST(WriteFileAtomic, AFullDiskLeavesTheOldFile) {
  Scratch scratch;
  const fs::path file = scratch / "a";
  test::put(file, "old");
  pid_t child = in_other_process([&] {
    test::limit_file_size(4096);
    auto result = write_file_atomic(file, std::string(100000, 'x'));
    if (result) return 1;
    if (result.error().code != ExitCode::kEnvironment) return 3;
    return result.error().hint.find("nothing was lost") == std::string::npos ? 2 : 0;
  });
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(test::slurp(file), "old");
  EXPECT_EQ(test::entries_in(scratch.path()), 1u) << "the temporary file is gone";
}

TEST(WriteFileAtomic, AFolderThatCannotBeWrittenIsAnError) {
  Scratch scratch;
  test::put(scratch / "file", "in the way");
  auto under_file = write_file_atomic(scratch / "file" / "a", "x");
  ASSERT_FALSE(under_file);
  EXPECT_EQ(under_file.error().hint, "check the path");
  EXPECT_FALSE(write_file_atomic("/proc/capstone-test", "x"));
  EXPECT_FALSE(write_file_atomic(scratch.path(), "x")) << "a folder is not replaced";
  EXPECT_EQ(test::slurp(scratch / "file"), "in the way");
}

TEST(WriteFileAtomic, ThreadsWritingTheSameFileLeaveOneWholeText) {
  Scratch scratch;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (char letter : {'a', 'b', 'c', 'd'})
    threads.emplace_back([&, letter] {
      for (int i = 0; i < 20; ++i)
        if (!write_file_atomic(scratch / "shared", std::string(50000, letter))) ++failures;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  const std::string text = test::slurp(scratch / "shared");
  ASSERT_EQ(text.size(), 50000u);
  EXPECT_EQ(text, std::string(50000, text[0]));
  EXPECT_EQ(test::entries_in(scratch.path()), 1u);
}

TEST(WriteNewFile, MakesParentsAndNeverOverwrites) {
  Scratch scratch;
  const fs::path file = scratch / "a/b/c.txt";
  ASSERT_TRUE(write_new_file(file, "first"));
  auto second = write_new_file(file, "second");
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().what.find("never overwritten"), std::string::npos);
  EXPECT_EQ(test::slurp(file), "first");
  EXPECT_EQ(test::entries_in(file.parent_path()), 1u);
}

TEST(WriteNewFile, ADanglingLinkIsInTheWayToo) {
  Scratch scratch;
  fs::create_symlink(scratch / "elsewhere", scratch / "link");
  EXPECT_FALSE(write_new_file(scratch / "link", "x"));
  EXPECT_FALSE(fs::exists(scratch / "elsewhere"));
}

TEST(WriteNewFile, OfManyWritersExactlyOneSucceeds) {
  Scratch scratch;
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(
        in_other_process([&, i] { return write_new_file(scratch / "x", std::to_string(i)) ? 0 : 1; }));
  int succeeded = 0;
  for (pid_t child : children) succeeded += exit_code_of(child) == 0;
  EXPECT_EQ(succeeded, 1);
}

TEST(MakeFolders, MakesAllAndSaysWhatIsInTheWay) {
  Scratch scratch;
  ASSERT_TRUE(make_folders(scratch / "a/b/c"));
  EXPECT_TRUE(make_folders(scratch / "a/b/c")) << "there already";
  EXPECT_TRUE(fs::is_directory(scratch / "a/b/c"));
  test::put(scratch / "file", "");
  auto result = make_folders(scratch / "file/d");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, (scratch / "file/d").string());
}

TEST(FileLock, AnotherProcessIsRefusedUntilItIsFreed) {
  Scratch scratch;
  auto try_lock = [&] {
    return exit_code_of(in_other_process([&] {
      auto lock = FileLock::acquire(scratch / "lock", false);
      if (lock) return 0;
      return lock.error().code == ExitCode::kEnvironment ? 1 : 2;
    }));
  };
  {
    auto lock = FileLock::acquire(scratch / "lock", false);
    ASSERT_TRUE(lock);
    EXPECT_EQ(try_lock(), 1);
    FileLock moved = std::move(*lock);
    EXPECT_EQ(try_lock(), 1) << "moving keeps it";
  }
  EXPECT_EQ(try_lock(), 0);
}

TEST(FileLock, WaitsForAProcessThatIsKilled) {
  Scratch scratch;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  pid_t holder = in_other_process([&] {
    auto lock = FileLock::acquire(scratch / "lock", true);
    [[maybe_unused]] ssize_t n = ::write(ready[1], "x", 1);
    ::pause();
    return 0;
  });
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(FileLock::acquire(scratch / "lock", false));
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::kill(holder, SIGKILL);
  });
  EXPECT_TRUE(FileLock::acquire(scratch / "lock", true)) << "the kernel frees a dead owner's lock";
  killer.join();
  EXPECT_EQ(exit_code_of(holder), -1);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(FileLock, AssigningFreesTheOneHeldBefore) {
  Scratch scratch;
  auto a = FileLock::acquire(scratch / "a", false);
  auto b = FileLock::acquire(scratch / "b", false);
  ASSERT_TRUE(a && b);
  *a = std::move(*b);
  EXPECT_TRUE(FileLock::acquire(scratch / "a", false));
  EXPECT_FALSE(FileLock::acquire(scratch / "b", false));
}

}  // namespace
}  // namespace capstone
