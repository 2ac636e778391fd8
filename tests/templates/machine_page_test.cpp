// The page of a machine's run.
#include "templates/machine_page.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/machine/search.h"
#include "tests/templates/big_run.h"

namespace capstone {
namespace {

class MachinePageTest : public ::testing::Test {
 protected:
  fs::path folder_ = fs::path(::testing::TempDir()) /
                     ("page_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
  MachinePageTest() { fs::remove_all(folder_); }
  std::string page_of(const machine::Archive& archive, const machine::RunInfo& run,
                      const machine::Tree& tree) {
    auto page = machine_page({&run, &tree, &archive, "A <problem>", "0.0"}, CAPSTONE_SOURCE_DIR "/templates");
    EXPECT_TRUE(page) << (page ? "" : render(page.error()));
    return page.value_or("");
  }
};

TEST_F(MachinePageTest, OfAThousandNodesFitsIntoFiveMegabytesAndUnfoldsInABrowser) {
  const BigRun run(folder_, 1000);
  const std::string page = page_of(run.archive(), run.info(), run.tree());
  EXPECT_LE(page.size(), 5u << 20);
  ASSERT_TRUE(write_file_atomic(folder_ / "tree.html", page));
  ProcessSpec check;
  check.argv = {"/usr/bin/env",
                "python3",
                "-B",
                CAPSTONE_SOURCE_DIR "/scripts/check_machine_page.py",
                (folder_ / "tree.html").string(),
                run.tree()[500].name,
                "made for node 500"};
  check.timeout = std::chrono::seconds(240);
  const auto checked = run_process(check);
  ASSERT_TRUE(checked);
  if (checked->status == 3) GTEST_SKIP() << checked->err;
  EXPECT_EQ(checked->status, 0) << checked->out << checked->err;
}

TEST_F(MachinePageTest, TextsOfAModelCannotBecomeMarkup) {
  const BigRun run(folder_, 8);
  machine::Tree tree = run.tree();
  for (machine::Node& node : tree) {
    node.failure = "<script>alert(1)</script>";
    node.idea = "</p><img src=x onerror=alert(1)>";
    node.labels = {"<b>label</b>"};
  }
  const std::string page = page_of(run.archive(), run.info(), tree);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("<b>label"), std::string::npos);
  EXPECT_NE(page.find("A &lt;problem&gt;"), std::string::npos);
}

TEST_F(MachinePageTest, OfARunWithoutAnswersIsAPage) {
  const BigRun run(folder_, 4);
  const std::string page = page_of(run.archive(), run.info(), {});
  EXPECT_NE(page.find("The machine's search"), std::string::npos) << page.substr(0, 3000);
}

}  // namespace
}  // namespace capstone
