#include "harness/course/gradebook/backup.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/course/gradebook/cohort_fixture.h"

namespace capstone {
namespace {

class Backup : public testing::GradebookTest {};

TEST_F(Backup, HoldsEveryMarkAndIsWholeWhileOthersWrite) {
  std::atomic<bool> stop = false;
  std::atomic<int> given = 0;
  std::thread writer([&] {
    Gradebook own = book();
    while (!stop) {
      ASSERT_TRUE(own.mark(rubric, {give("ada", "depth", given % 2 ? 5 : 6)}));
      ++given;
    }
  });
  while (given < 5) std::this_thread::yield();
  const int before = given;
  const auto backed_up = back_up_gradebook(folder, folder / "copy.sqlite");
  stop = true;
  writer.join();
  ASSERT_TRUE(backed_up) << backed_up.error().what;
  const auto check = verify_gradebook(folder / "copy.sqlite");
  ASSERT_TRUE(check);
  EXPECT_TRUE(check->problems.empty());
  EXPECT_GE(check->marks, before);
  EXPECT_LE(check->marks, given);
  EXPECT_EQ(check->submissions, 2);
  EXPECT_EQ(fs::status(folder / "copy.sqlite").permissions() & fs::perms::mask,
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Backup, ReplacesNothingAndLeavesNothingHalfDone) {
  { std::ofstream(folder / "copy.sqlite") << "mine"; }
  EXPECT_FALSE(back_up_gradebook(folder, folder / "copy.sqlite"));
  EXPECT_EQ(read_file(folder / "copy.sqlite").value(), "mine");
  EXPECT_FALSE(back_up_gradebook(folder / "none", folder / "other.sqlite"));
  EXPECT_FALSE(fs::exists(folder / "other.sqlite"));
}

TEST_F(Backup, DamageIsFound) {
  { Gradebook one = book(); }
  std::fstream file(folder / "gradebook.sqlite", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096 * 2);
  file << std::string(4096, '\xff');
  file.close();
  const auto check = verify_gradebook(folder / "gradebook.sqlite");
  EXPECT_TRUE(!check || !check->problems.empty());
}

TEST_F(Backup, TheCohortIsNotReadableByOtherUsers) {
  fs::permissions(folder, fs::perms::all);
  { Gradebook one = book(); }
  for (const fs::path& place : {folder, folder / "gradebook.sqlite"})
    EXPECT_EQ(fs::status(place).permissions() & fs::perms::others_all, fs::perms::none) << place;
}

}  // namespace
}  // namespace capstone
