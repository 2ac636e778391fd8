// `capstone scorecard`: published ratios beside those measured here.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Scorecard : public CliTest {};

TEST_F(Scorecard, HasEveryPublishedProblemInBothClasses) {
  const Outcome shown = capstone({"scorecard"});
  EXPECT_EQ(shown.code, 0) << shown;
  for (const char* part :
       {"Matmul", "Conv2D", "Softmax", "LayerNorm", "Conv2D + ReLU + MaxPool", "conv2d_loose", "1e-2",
        "4.84x", "1.80x", "2.90x", "1.01x", "1.12x", "does not survive"})
    EXPECT_TRUE(says(shown.out, part)) << part;
}

TEST_F(Scorecard, JsonNamesProblemsOfTheCatalogueAndKernelsWithTheirDevices) {
  const Outcome shown = capstone({"scorecard", "--format", "json"});
  ASSERT_EQ(shown.code, 0) << shown;
  const Json rows = Json::parse(shown.out);
  ASSERT_EQ(rows.size(), 10u);
  for (const Json& row : rows) {
    EXPECT_TRUE(fs::exists(fs::path(CAPSTONE_SOURCE_DIR) / "problems" / row["problem"].get<std::string>()))
        << row;
    for (const Json& kernel : row["here"]) {
      EXPECT_FALSE(kernel["device"].get<std::string>().empty()) << row;
      EXPECT_FALSE(kernel["ratios"].empty()) << row;
    }
  }
  // Softmax of the published size was measured beside PyTorch on an H200.
  const auto softmax =
      std::find_if(rows.begin(), rows.end(), [](const Json& row) { return row["problem"] == "softmax"; });
  ASSERT_NE(softmax, rows.end());
  EXPECT_TRUE((*softmax)["here"].at(0)["ratios"].contains("eager"));
}

}  // namespace
}  // namespace capstone::cli_test
