// The worklog as a browser shows it.
#include <cstdlib>

#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

class Page : public CliTest {
 protected:
  // Looks at the page with scripts/check_html.sh; its exit code 3 says that there is no browser.
  Outcome look_at(const fs::path& page) const {
    return program({"bash", std::string(CAPSTONE_SOURCE_DIR) + "/scripts/check_html.sh", page.string()},
                   {.patience = std::chrono::seconds(100)});
  }

  fs::path measured_project() const {
    fs::path root = project("project", "02");
    EXPECT_EQ(measure(root, {"-m", "first"}).code, 0);
    spit(home_ / "reply.md", "```cuda\n" + slurp(root / "human" / "kernel.cu") + "```\n");
    EXPECT_EQ(capstone({"llm", "add", (home_ / "reply.md").string(), "--model", "m", "--backend", "emulated",
                        "--hidden", "0"},
                       {.cwd = root})
                  .code,
              0);
    return root;
  }
};

TEST_F(Page, ShowsFiveSectionsAndPlotsWithoutARequest) {
  fs::path root = measured_project();
  ASSERT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  Outcome looked = look_at(root / "report" / "worklog.html");
  if (looked.code == 3) GTEST_SKIP() << looked.err;
  EXPECT_EQ(looked.code, 0) << looked;
  expect_ledger_intact(root);
}

TEST_F(Page, AMapOfWrongElementsFitsAPhone) {
  const fs::path root = project("project", "01", "vector_add"), file = root / "human" / "kernel.cu";
  EXPECT_EQ(measure(root, {"-m", "right"}).code, 0);
  std::string source = slurp(file);
  const std::size_t plus = source.find("] + ");
  ASSERT_NE(plus, std::string::npos) << source;
  spit(file, source.replace(plus, 4, "] + (i % 4 > 0) * "));
  EXPECT_EQ(measure(root, {"-m", "wrong"}).code, 1);
  ASSERT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  EXPECT_TRUE(says(slurp(root / "report" / "worklog.html"),
                   "<svg class=\"map\" role=\"img\" aria-label=\"A map of "));
  const Outcome looked = look_at(root / "report" / "worklog.html");
  if (looked.code == 3) GTEST_SKIP() << looked.err;
  EXPECT_EQ(looked.code, 0) << looked;
}

TEST_F(Page, ScriptsPlantedInProseAndReasonsStayText) {
  fs::path root = measured_project();
  const std::string planted = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
  EXPECT_EQ(measure(root, {"-m", planted}).code, 0);
  EXPECT_EQ(capstone({"predict", "memory", "--because", planted}, {.cwd = root}).code, 0);
  std::string worklog = slurp(root / "worklog.md");
  std::size_t question = worklog.find("> Q: ");
  ASSERT_NE(question, std::string::npos);
  std::size_t below = worklog.find('\n', question) + 1;
  worklog.insert(below, "\n" + planted + "\n\n[a link](javascript:alert(3))\n\n" + planted + "\n");
  spit(root / "worklog.md", worklog);
  ASSERT_EQ(capstone({"report"}, {.cwd = root}).code, 0);
  std::string html = slurp(root / "report" / "worklog.html");
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find("href=\"javascript:"), std::string::npos);
  EXPECT_TRUE(says(html, "alert(1)")) << "the student's words are shown, as words";
  Outcome looked = look_at(root / "report" / "worklog.html");
  if (looked.code == 3) GTEST_SKIP() << looked.err;
  EXPECT_EQ(looked.code, 0) << looked;
  expect_ledger_intact(root);
}

}  // namespace
}  // namespace capstone::cli_test
