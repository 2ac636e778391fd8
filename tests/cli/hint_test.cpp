// `capstone hint`: what a student sees, and what is left of it in the project.
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Hint : public CliTest {
 protected:
  Json json_of(std::vector<std::string> words, const fs::path& root) const {
    words.insert(words.end(), {"--format", "json"});
    const Outcome answer = capstone(words, {.cwd = root});
    EXPECT_EQ(answer.code, 0) << answer;
    return Json::parse(answer.out, nullptr, false);
  }
};

TEST_F(Hint, TheNextOneIsShownUntilTheLast) {
  const fs::path root = project("mine", {}, "vector_add");
  const Outcome first = capstone({"hint"}, {.cwd = root});
  EXPECT_EQ(first.code, 0) << first;
  EXPECT_TRUE(says(first.out, "hint 1 of 3\nThree vectors of 512 MB"));
  EXPECT_TRUE(says(first.out, "It costs no marks"));
  EXPECT_TRUE(says(first.out, "if you are still stuck: capstone hint 2"));
  EXPECT_EQ(capstone({"hint", "3"}, {.cwd = root}).code, 2) << "2 was not taken";
  EXPECT_TRUE(says(capstone({"hint"}, {.cwd = root}).out, "hint 2 of 3"));
  const Outcome again = capstone({"hint", "1"}, {.cwd = root});
  EXPECT_TRUE(says(again.out, "hint 1 of 3"));
  EXPECT_EQ(again.out.find("recorded:"), std::string::npos) << again;
  EXPECT_TRUE(says(capstone({"hint", "3"}, {.cwd = root}).out, "that was the last hint"));
  EXPECT_EQ(records(root, "hint").size(), 3u);
  expect_ledger_intact(root);
}

TEST_F(Hint, ListSaysWhatIsThereWithoutTextsAndShownHasTheTextsThatWereTaken) {
  const fs::path root = project("mine", {}, "vector_add");
  const Outcome fresh = capstone({"hint", "--list"}, {.cwd = root});
  EXPECT_EQ(fresh.out,
            "hint 1  next\nhint 2  open\nhint 3  open\n3 of 3 left; the next one: capstone hint\n");
  EXPECT_EQ(capstone({"hint"}, {.cwd = root}).code, 0);
  const Outcome listed = capstone({"hint", "--list"}, {.cwd = root}),
                shown = capstone({"hint", "--shown"}, {.cwd = root});
  EXPECT_TRUE(says(listed.out, "hint 1  taken before the first version (20"));
  EXPECT_TRUE(says(listed.out, "2 of 3 left"));
  EXPECT_EQ(listed.out.find("512 MB"), std::string::npos) << listed;
  EXPECT_TRUE(says(shown.out, "Three vectors of 512 MB"));
  EXPECT_EQ(shown.out.find("1/12 FLOP"), std::string::npos) << "hint 2 was not taken: " << shown;
  EXPECT_EQ(records(root, "hint").size(), 1u) << "neither records anything";

  const Json all = json_of({"hint", "--shown"}, root), taken = json_of({"hint", "1"}, root);
  EXPECT_EQ(all["hints"].size(), 3u);
  EXPECT_EQ(all["hints"][0]["text"], taken["text"]);
  EXPECT_TRUE(all["hints"][1]["taken"].is_null());
  EXPECT_FALSE(all["hints"][1].contains("text"));
  EXPECT_EQ(taken["first_time"], false);
  EXPECT_EQ(json_of({"hint"}, root)["first_time"], true);
}

TEST_F(Hint, StatusAndLedgerAndReportTellOfIt) {
  const fs::path root = project("mine", "01", "vector_add");
  EXPECT_TRUE(
      says(capstone({"status"}, {.cwd = root}).out, "hints    0 of 3 taken; the next one: capstone hint"));
  ASSERT_EQ(measure(root, {"--quick"}).code, 0);
  ASSERT_EQ(capstone({"hint"}, {.cwd = root}).code, 0);
  EXPECT_EQ(json_of({"status"}, root)["hints"], (Json{{"of", 3}, {"taken", 1}}));
  EXPECT_TRUE(says(capstone({"ledger"}, {.cwd = root}).out, "hint         1 of 3"));
  ASSERT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  EXPECT_TRUE(says(slurp(root / "report" / "worklog.html"), "The author took hint 1 of 3, after v1 (20"));
  EXPECT_TRUE(says(slurp(root / "report" / "score_sheet.md"), "hint 1 of 3, after v1 (20"));
}

TEST_F(Hint, OutsideOfAProjectTheAnswerSaysWhereToGo) {
  EXPECT_TRUE(says(capstone({"hint"}).err, "capstone init"));
  const Outcome named = capstone({"hint", "sgemm"});
  EXPECT_EQ(named.code, 2);
  EXPECT_TRUE(says(named.err, "`sgemm` is not the number of a hint"));
  EXPECT_TRUE(says(named.err, "capstone init PROBLEM"));
  ASSERT_EQ(capstone({"lab", "L2-1"}).code, 0);
  EXPECT_TRUE(says(capstone({"hint"}, {.cwd = home_ / "L2-1"}).err, "capstone lab hint"));
  const fs::path root = project("mine", {}, "vector_add");
  EXPECT_TRUE(says(capstone({"lab", "hint"}, {.cwd = root}).err, "the hints of a project: capstone hint"));
}

TEST_F(Hint, AProblemOfTheUsersOwnHasThoseOfItsFolderOrNone) {
  const fs::path bare = project_of_own_problem("bare", "without");
  const Outcome none = capstone({"hint"}, {.cwd = bare});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(says(none.err, "the problem bare has no hints"));
  EXPECT_TRUE(says(none.err, "capstone explain"));
  EXPECT_TRUE(records(bare, "hint").empty());
  EXPECT_EQ(capstone({"status"}, {.cwd = bare}).out.find("hints"), std::string::npos);

  const fs::path definition = home_ / "definition_of_without" / "bare";
  spit(definition / "hints.md", "## Hint 1\nWhy?\n## Hint 2\nTherefore.\n## Hint 3\nSo.\n");
  const fs::path root = project("with", {}, definition.string());
  EXPECT_TRUE(says(capstone({"hint"}, {.cwd = root}).out, "hint 1 of 3\nWhy?\n"));
  EXPECT_EQ(records(root, "hint").size(), 1u);
}

}  // namespace
}  // namespace capstone::cli_test
