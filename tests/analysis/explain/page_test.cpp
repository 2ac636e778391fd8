// The heat-map page.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "templates/explanation_page.h"
#include "tests/analysis/explain/fixture.h"

namespace capstone::test {
namespace {
namespace fs = std::filesystem;

TEST(ExplanationPage, ShowsEveryLineEscapedAndHeatsTheDearOnes) {
  const fs::path folder = fs::temp_directory_path() / ("capstone-page-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "kernel.cu")
      << "// <script>alert(1)</script>\nfloat a = x[i * 32];\n\n// last line\n";
  const Problem problem = stream_problem();
  ExplainRequest request{&problem, folder / "kernel.cu", problem.emulate, *find_device_like("h100")};
  auto e = interpret(report({line(2, global(32, 1024, 128, 4096, 1024), shared(0, 0, 0, 0, 0))}), request);
  ASSERT_TRUE(e) << render(e.error());
  e->source = "human/<kernel>.cu";
  const auto page = explanation_page(*e, folder / "kernel.cu", fs::path(CAPSTONE_SHARE) / "templates");
  fs::remove_all(folder);
  ASSERT_TRUE(page) << render(page.error());
  EXPECT_EQ(page->find("<script>"), std::string::npos);
  EXPECT_EQ(page->find("<kernel>"), std::string::npos);
  EXPECT_NE(page->find("&lt;script&gt;alert(1)"), std::string::npos);
  EXPECT_NE(page->find("<tr class=\"heat-9\"><td class=\"number muted\">2</td>"), std::string::npos);
  EXPECT_NE(page->find("<tr class=\"heat-0\"><td class=\"number muted\">1</td>"), std::string::npos);
  EXPECT_NE(page->find("// last line"), std::string::npos);
  EXPECT_NE(page->find("32.0 / 4.0"), std::string::npos);
  EXPECT_NE(page->find("</strong> on NVIDIA H100"), std::string::npos);
  for (const char* outside : {"http://", "https://", "src=", "@import"})
    EXPECT_EQ(page->find(outside), std::string::npos) << outside;
}

}  // namespace
}  // namespace capstone::test
