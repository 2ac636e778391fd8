// A ledger that is stored compressed: every reader gets its text, and appending decompresses it first.
#include "harness/project/ledger/stored.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "harness/base/files.h"
#include "harness/project/ledger/ledger.h"
#include "tests/base/scratch.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;

void gzip(const fs::path& file) { ASSERT_EQ(std::system(("gzip -n '" + file.string() + "'").c_str()), 0); }

class StoredLedger : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(append_record(path_, "init", {{"n", 1}}, "machine-a"));
    ASSERT_TRUE(append_record(path_, "init", {{"n", 2}}, "machine-a"));
    text_ = test::slurp(path_);
    gzip(path_);
  }
  test::Scratch scratch_;
  const fs::path path_ = scratch_ / "ledger.jsonl";
  std::string text_;
};

TEST_F(StoredLedger, IsReadAsTextWithoutUnpackingIt) {
  EXPECT_EQ(read_ledger_text(path_).value(), text_);
  auto view = read_ledger(path_);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->records.size(), 2u);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(StoredLedger, IsUnpackedBeforeARecordIsAppendedAndTheChainGoesOn) {
  ASSERT_TRUE(append_record(path_, "init", {{"n", 3}}, "machine-a"));
  EXPECT_FALSE(fs::exists(path_.string() + ".gz"));
  EXPECT_TRUE(test::slurp(path_).starts_with(text_));
  auto view = read_ledger(path_);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->records.size(), 3u);
  EXPECT_TRUE(view->damage.empty());
}

TEST_F(StoredLedger, ATextBesideItWins) {
  test::put(path_, "");
  EXPECT_EQ(read_ledger_text(path_).value(), "");
}

TEST_F(StoredLedger, ADamagedFileIsAnErrorThatNamesIt) {
  fs::resize_file(path_.string() + ".gz", 20);
  auto text = read_ledger_text(path_);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().where, path_.string() + ".gz");
}

}  // namespace
}  // namespace capstone
