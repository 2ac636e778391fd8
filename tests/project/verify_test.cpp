#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

class Verify : public ::testing::Test {
 protected:
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl", sources = scratch / "sources";

  void measure(const std::string& version) {
    ASSERT_TRUE(keep_source(sources, "source of " + version));
    ASSERT_TRUE(append_record(ledger, "measurement", measurement(version), kLaptop));
  }
  std::vector<std::string> lines() const { return split(slurp(ledger), '\n'); }
  std::vector<std::string> findings() const { return verify_ledger(ledger, sources).value(); }
  fs::path source(const std::string& version) const {
    return sources / (sha256_hex("source of " + version) + ".cu");
  }
};

TEST_F(Verify, AnHonestLedgerHasNoFindings) {
  ASSERT_TRUE(append_record(ledger, "init", {}, kLaptop));
  measure("v1");
  measure("v2");
  measure("v1");
  EXPECT_TRUE(findings().empty()) << findings().front();
}

TEST_F(Verify, AChangedNumberBreaksTheChainAtTheNextLine) {
  measure("v1");
  measure("v2");
  put(ledger, replace_all(slurp(ledger), "\"why v1\"", "\"why not\""));
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_TRUE(findings()[0].starts_with("line 2: broken chain")) << findings()[0];
}

TEST_F(Verify, ARemovedLineIsMissed) {
  for (const char* version : {"v1", "v2", "v3"}) measure(version);
  auto all = lines();
  all.erase(all.begin() + 1);
  put(ledger, join(all, "\n"));
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_TRUE(findings()[0].starts_with("line 2: broken chain")) << findings()[0];
}

TEST_F(Verify, ALostBeginningIsMissed) {
  measure("v1");
  measure("v2");
  put(ledger, lines()[1] + "\n");
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_TRUE(findings()[0].starts_with("line 1: broken chain")) << findings()[0];
}

TEST_F(Verify, ADoubledLineAndAForkAreNamed) {
  measure("v1");
  measure("v2");
  const auto before = lines();
  put(ledger, before[0] + "\n" + before[1] + "\n" + before[1] + "\n");
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_EQ(findings()[0], "line 3: duplicate of line 2");

  put(ledger, before[0] + "\n" + before[1] + "\n" + replace_all(before[1], "why v2", "why else") + "\n");
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_NE(findings()[0].find("line 3: broken chain: it follows line 1, and so does line 2"),
            std::string::npos)
      << findings()[0];
}

TEST_F(Verify, AChangedSourceIsNamed) {
  measure("v1");
  put(source("v1"), "another kernel");
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_TRUE(findings()[0].starts_with("line 1: its source was changed")) << findings()[0];
}

TEST_F(Verify, AMissingSourceIsNamedOnEveryLineThatNeedsIt) {
  measure("v1");
  measure("v1");
  fs::remove(source("v1"));
  ASSERT_EQ(findings().size(), 2u);
  EXPECT_TRUE(findings()[0].starts_with("line 1: its source is missing")) << findings()[0];
  EXPECT_TRUE(findings()[1].starts_with("line 2: its source is missing")) << findings()[1];
}

TEST_F(Verify, ATornLastLineIsNamed) {
  measure("v1");
  std::ofstream(ledger, std::ios::app) << "{\"schema_version\":1,\"se";
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_TRUE(findings()[0].starts_with("line 2: torn")) << findings()[0];
}

TEST_F(Verify, OneNameForTwoSourcesIsNamed) {
  measure("v1");
  Measurement other = measurement("v1");
  other.source_sha256 = keep_source(sources, "something else").value();
  ASSERT_TRUE(append_record(ledger, "measurement", other, kCluster));
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_EQ(findings()[0], "line 2: v1 names another source than on line 1");
}

TEST_F(Verify, ReadsOnly) {
  measure("v1");
  std::ofstream(ledger, std::ios::app) << "{\"torn";
  const auto before = tree(scratch.path());
  findings();
  EXPECT_EQ(tree(scratch.path()), before);
}

}  // namespace
}  // namespace capstone
