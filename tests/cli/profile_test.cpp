// `capstone profile` without a GPU: what compiler, cost model and emulator know, and what nobody knows here.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Profiles : public CliTest {};

TEST_F(Profiles, WithoutCountersSaysWhatIsKnownAndWhatIsNot) {
  Outcome shown = capstone({"profile", "02", "--problem", "damped_steps", "--no-ncu"});
  ASSERT_EQ(shown.code, 0) << shown;
  EXPECT_TRUE(says(shown.out, "no counters of a GPU: ncu was not to be used"));
  EXPECT_TRUE(says(shown.out, "times the ideal wavefronts: bank conflicts"));
  EXPECT_TRUE(says(shown.out, "percent of peak    n/a"));
  EXPECT_TRUE(says(shown.out, "bound by memory on"));
}

TEST_F(Profiles, OfAProjectIsKeptInItsLedger) {
  const fs::path root = project("p", "03", "damped_steps");
  Outcome shown = capstone({"profile", "--no-ncu", "--on", "4090", "--format", "json"}, {.cwd = root});
  ASSERT_EQ(shown.code, 0) << shown;
  const Json json = Json::parse(shown.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << shown;
  EXPECT_TRUE(json["kernels"][0]["time_us"].is_null()) << "unknown is not zero";
  EXPECT_TRUE(json["kernels"][0]["sectors_per_request"].is_number());
  EXPECT_TRUE(says(json["peak"].get<std::string>(), "4090"));
  const auto kept = records(root, "profile");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0]["body"]["source"], "human/kernel.cu");
  EXPECT_EQ(kept[0]["body"]["kernels"], json["kernels"]);
  expect_ledger_intact(root);
}

TEST_F(Profiles, MistakesSayWhatToDo) {
  Outcome arch = capstone({"profile", "02", "--problem", "damped_steps", "--arch", "hopper"});
  EXPECT_EQ(arch.code, 2) << arch;
  EXPECT_TRUE(says(arch.err, "an architecture is called sm_80"));
  Outcome rung = capstone({"profile", "01_naive", "--problem", "damped_steps"});
  EXPECT_EQ(rung.code, 2) << rung;
  EXPECT_TRUE(says(rung.err, "rungs of this problem: 01_uncoalesced"));
  Outcome table = capstone({"profile", "02", "--problem", "damped_steps", "--no-ncu", "--csv", "table.csv"});
  EXPECT_EQ(table.code, 3) << table;
  EXPECT_TRUE(says(table.err, "there is no table of ncu's to write"));
  spit(home_ / "wrong.cu", "not a kernel\n");
  Outcome broken = capstone({"profile", (home_ / "wrong.cu").string(), "--problem", "damped_steps", "--no-ncu"});
  EXPECT_EQ(broken.code, 1) << broken;
  EXPECT_TRUE(says(broken.err, "does not compile"));
}

}  // namespace
}  // namespace capstone::cli_test
