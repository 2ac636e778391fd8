#include "harness/base/file_watch.h"

#include <gtest/gtest.h>

#include <thread>

#include "harness/base/files.h"
#include "tests/base/scratch.h"

namespace capstone {
namespace {

using std::chrono::milliseconds;

class FileWatches : public ::testing::Test {
 protected:
  FileWatches() : watch_(make()) {}

  FileWatch make() const {
    auto made = FileWatch::make();
    if (!made || !made->add(scratch_ / ".")) throw std::runtime_error("no watch");
    return std::move(*made);
  }

  test::Scratch scratch_;
  FileWatch watch_;
};

TEST_F(FileWatches, AnEditorsSaveByRenamingIsOneChange) {
  const fs::path file = scratch_ / "kernel.cu";
  ASSERT_TRUE(write_file_atomic(file, "one"));
  std::error_code code;
  fs::rename(file, scratch_ / "kernel.cu~", code);
  ASSERT_TRUE(write_file_atomic(file, "two"));
  EXPECT_TRUE(watch_.wait(milliseconds(2000)));
  EXPECT_FALSE(watch_.wait(milliseconds(150))) << "the events of one save came twice";
}

TEST_F(FileWatches, NothingHappensUntilTheTimeIsOver) { EXPECT_FALSE(watch_.wait(milliseconds(50))); }

TEST_F(FileWatches, ASaveDuringTheWaitEndsIt) {
  std::thread editor([&] {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_TRUE(write_file_atomic(scratch_ / "kernel.cu", "text"));
  });
  EXPECT_TRUE(watch_.wait(milliseconds(5000)));
  editor.join();
}

TEST_F(FileWatches, AFolderThatIsMissingIsNamed) {
  const auto added = watch_.add(scratch_ / "missing");
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().where, (scratch_ / "missing").string());
}

}  // namespace
}  // namespace capstone
