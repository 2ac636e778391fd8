#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

const PinnedProblem kTwice{"twice", std::string(64, '1')};

class Import : public ::testing::Test {
 protected:
  Scratch scratch;
  const fs::path ours = scratch / "ours/.capstone/ledger.jsonl", theirs = scratch / "theirs/.capstone/ledger.jsonl";

  static void measure(const fs::path& ledger, const std::string& version, const std::string& machine) {
    ASSERT_TRUE(keep_source(ledger.parent_path() / "sources", "source of " + version));
    ASSERT_TRUE(append_record(ledger, "measurement", measurement(version), machine));
  }
  std::vector<std::string> findings() const {
    return verify_ledger(ours, ours.parent_path() / "sources").value();
  }
};

TEST_F(Import, BringsRecordsAndTheirSourcesByteForByte) {
  measure(ours, "v1", kLaptop);
  measure(theirs, "v2", kCluster);
  measure(theirs, "v3", kCluster);
  const std::string before = slurp(ours);
  EXPECT_EQ(import_records(ours, theirs, kTwice).value(), 2);
  EXPECT_EQ(slurp(ours), before + slurp(theirs));
  EXPECT_TRUE(findings().empty()) << findings().front();
}

TEST_F(Import, RecordsOfAnotherProblemAreRefusedBeforeAnythingIsWritten) {
  measure(ours, "v1", kLaptop);
  const std::string before = slurp(ours);
  Measurement other = measurement("v3");
  for (const auto& [id, digest] : {std::pair<std::string, std::string>{"thrice", ""}, {"twice", std::string(64, '2')}}) {
    fs::remove_all(theirs.parent_path());
    measure(theirs, "v2", kCluster);   // without a digest: it would fit
    other.problem_id = id, other.problem_digest = digest;
    ASSERT_TRUE(append_record(theirs, "measurement", other, kCluster));
    auto refused = import_records(ours, theirs, kTwice);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("record 2 does not belong to this project: "), std::string::npos) << refused.error().what;
    EXPECT_EQ(refused.error().where, theirs.string() + ":2");
    EXPECT_EQ(slurp(ours), before);
    EXPECT_FALSE(fs::exists(ours.parent_path() / "sources" / (sha256_hex("source of v2") + ".cu")));
  }
}

TEST_F(Import, AnotherProjectOfTheSameProblemIsRefused) {
  for (const auto& [ledger, machine] : {std::pair(ours, kLaptop), std::pair(theirs, kCluster)})
    ASSERT_TRUE(append_record(ledger, "init", {{"problem_id", "twice"}, {"problem_digest", kTwice.digest}}, machine));
  const std::string before = slurp(ours);
  auto refused = import_records(ours, theirs, kTwice);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("the first record of another project"), std::string::npos) << refused.error().what;
  EXPECT_EQ(slurp(ours), before);
}

TEST_F(Import, SkipsWhatIsHereAlready) {
  measure(ours, "v1", kLaptop);
  measure(theirs, "v2", kCluster);
  EXPECT_EQ(import_records(ours, theirs, kTwice).value(), 1);
  EXPECT_EQ(import_records(ours, theirs, kTwice).value(), 0);
  measure(theirs, "v3", kCluster);
  EXPECT_EQ(import_records(ours, theirs, kTwice).value(), 1);
  EXPECT_EQ(read_ledger(ours)->records.size(), 3u);
  EXPECT_TRUE(findings().empty()) << findings().front();
}

TEST_F(Import, AProjectThatMovedAndCameBackIsOneChainEach) {
  measure(ours, "v1", kLaptop);
  fs::create_directories(theirs.parent_path());
  fs::copy(ours.parent_path(), theirs.parent_path(), fs::copy_options::recursive);
  measure(theirs, "v2", kCluster);
  measure(ours, "v3", kLaptop);
  EXPECT_EQ(import_records(ours, theirs, kTwice).value(), 1);
  auto next = append_record(ours, "checkin", {}, kLaptop);
  EXPECT_EQ(next->seq, 3) << "our own chain goes on behind theirs";
  EXPECT_TRUE(findings().empty()) << findings().front();
}

TEST_F(Import, TwoBundlesMeasuredOnTheSameClusterBothCount) {
  measure(ours, "v1", kLaptop);
  measure(theirs, "v1", kCluster);
  EXPECT_EQ(import_records(ours, theirs, kTwice).value(), 1);
  const fs::path second = scratch / "second/.capstone/ledger.jsonl";  // a new folder there starts a new chain
  measure(second, "v2", kCluster);
  EXPECT_EQ(import_records(ours, second, kTwice).value(), 1);
  EXPECT_TRUE(findings().empty()) << findings().front();
}

TEST_F(Import, TwoContinuationsOfOneChainAreAConflictThatNamesBothLines) {
  measure(ours, "v1", kLaptop);
  fs::create_directories(theirs.parent_path());
  fs::copy(ours.parent_path(), theirs.parent_path(), fs::copy_options::recursive);
  measure(ours, "v2", kLaptop);
  measure(theirs, "v3", kLaptop);
  const auto before = tree(ours.parent_path());
  auto result = import_records(ours, theirs, kTwice);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().where.find(ours.string() + ":2"), std::string::npos) << result.error().where;
  EXPECT_NE(result.error().where.find(theirs.string() + ":2"), std::string::npos) << result.error().where;
  EXPECT_EQ(slurp(ours), before.at("ledger.jsonl"));
}

TEST_F(Import, ADamagedLedgerIsRefusedWhole) {
  measure(ours, "v1", kLaptop);
  for (const char* version : {"v2", "v3"}) measure(theirs, version, kCluster);
  const std::string before = slurp(ours), good = slurp(theirs);
  put(theirs, replace_all(good, "why v2", "why not"));
  auto result = import_records(ours, theirs, kTwice);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, theirs.string() + ":2");
  put(theirs, "rubbish\n" + good);
  result = import_records(ours, theirs, kTwice);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().where, theirs.string() + ":1");
  EXPECT_EQ(slurp(ours), before);
}

TEST_F(Import, ATornLastLineIsLeftOut) {
  measure(ours, "v1", kLaptop);
  measure(theirs, "v2", kCluster);
  std::ofstream(theirs, std::ios::app) << "{\"schema";
  EXPECT_EQ(import_records(ours, theirs, kTwice).value(), 1);
  EXPECT_TRUE(findings().empty()) << findings().front();
}

TEST_F(Import, AChangedSourceIsRefused) {
  measure(ours, "v1", kLaptop);
  measure(theirs, "v2", kCluster);
  put(theirs.parent_path() / "sources" / (sha256_hex("source of v2") + ".cu"), "changed");
  const std::string before = slurp(ours);
  EXPECT_FALSE(import_records(ours, theirs, kTwice));
  EXPECT_EQ(slurp(ours), before);
}

TEST_F(Import, AMissingFileIsAnError) {
  measure(ours, "v1", kLaptop);
  EXPECT_FALSE(import_records(ours, scratch / "none.jsonl", kTwice));
}

}  // namespace
}  // namespace capstone
