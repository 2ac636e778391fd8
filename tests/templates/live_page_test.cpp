// What `open --serve` adds to a page.
#include "templates/live_page.h"

#include <gtest/gtest.h>

#include "fixture.h"
#include "harness/base/text.h"
#include "templates/report.h"

namespace capstone {
namespace {

using testing::has;

class LivePage : public ::testing::Test {
 protected:
  static ReportFiles report() {
    const testing::Scratch scratch;
    const testing::Capstone capstone = testing::make_capstone(scratch.path(), testing::Where::kEmulated);
    const Resources resources = testing::test_resources();
    return render_report({&capstone.project, &capstone.ledger, &resources, std::nullopt, ""}).value();
  }
};

TEST_F(LivePage, HasOneScriptThatThePolicyAllowsAndNoOther) {
  const ReportFiles files = report();
  for (const char* name : {"worklog.html", "score_sheet.html"}) {
    const std::string& written = files.at(name);
    const auto live = live_page(written, "0f3a", std::nullopt);
    ASSERT_TRUE(live) << render(live.error());
    const std::string script = "<script src=\"live.js\" data-version=\"0f3a\"></script>\n",
                      allowed = " script-src 'self'; connect-src 'self';";
    ASSERT_TRUE(has(*live, script + "</body>"));
    ASSERT_TRUE(has(*live, "default-src 'none';" + allowed + " style-src"));
    EXPECT_EQ(replace_all(replace_all(*live, script, ""), allowed, ""), written) << "nothing else is changed";
    EXPECT_FALSE(has(written, "<script")) << "a file of a report has none";
  }
}

TEST_F(LivePage, AProblemStandsAboveTheLastGoodPageAsText) {
  const ReportFiles files = report();
  const Error problem{"no <img src=x onerror=alert(1)> here", "worklog.md:3", "take it out"};
  const auto live = live_page(files.at("worklog.html"), "0f3a", problem);
  ASSERT_TRUE(live);
  EXPECT_TRUE(has(*live, "role=\"alert\""));
  EXPECT_TRUE(has(*live, "error: no &lt;img src=x onerror=alert(1)&gt; here"));
  EXPECT_FALSE(has(*live, "<img"));
  EXPECT_LT(live->find("role=\"alert\""), live->find("<header"));
  EXPECT_TRUE(has(*live, "id=\"section-5\""));
}

TEST_F(LivePage, AProblemIsShownThoughThereIsNoPageYet) {
  const auto live = live_page("", "0f3a", Error{"cannot read", "worklog.md", ""});
  ASSERT_TRUE(live);
  EXPECT_TRUE(has(*live, "error: cannot read"));
  EXPECT_TRUE(has(*live, "default-src 'none'; script-src 'self'"));
  EXPECT_TRUE(has(*live, "<script src=\"live.js\""));
}

TEST_F(LivePage, APageWithoutAPolicyGetsNoScript) {
  EXPECT_FALSE(live_page("<p>hello</p>", "0f3a", std::nullopt));
}

}  // namespace
}  // namespace capstone
