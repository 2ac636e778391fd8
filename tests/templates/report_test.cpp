#include "templates/report.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <regex>
#include <set>

#include "fixture.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "rubric/worklog.h"

namespace capstone {
namespace {

using testing::Where;

struct ReportTest : ::testing::Test {
  testing::Scratch scratch;
  testing::Capstone capstone = testing::make_capstone(scratch.path());
  Resources resources = testing::test_resources();

  ReportInput input() {
    return {&capstone.project, &capstone.ledger, &resources, std::nullopt, "2026-03-09T18:00:00Z"};
  }
  ReportFiles render() {
    Result<ReportFiles> report = render_report(input());
    if (!report) throw std::runtime_error(capstone::render(report.error()));
    return *report;
  }
  std::string html() { return render().at("worklog.html"); }
  std::string html_of(const std::string& worklog) {
    testing::write_worklog(capstone, worklog);
    return html();
  }
  void go_emulated() { capstone = testing::make_capstone(scratch.path(), Where::kEmulated); }
};

int count(const std::string& text, std::string_view what) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}
using testing::has;

/// Expects nothing that a browser would run or fetch: no script, no event handler, no element or style that
/// loads a file.
void expect_inert(const std::string& html) {
  EXPECT_FALSE(std::regex_search(
      html,
      std::regex("<(script|iframe|object|embed|img|link|base|form|audio|video)\\b", std::regex::icase)));
  EXPECT_FALSE(std::regex_search(html, std::regex("<[a-z][^>]{0,400}\\son[a-z]+\\s*=", std::regex::icase)));
  EXPECT_FALSE(std::regex_search(
      html, std::regex("(href|src)\\s*=\\s*[\"']?\\s*(javascript|data|vbscript|file):", std::regex::icase)));
  EXPECT_FALSE(
      std::regex_search(html, std::regex("@import|url\\(\\s*['\"]?(https?:|//)", std::regex::icase)));
}

TEST_F(ReportTest, HasFiveSectionsInOrder) {
  std::string page = html();
  std::size_t last = 0;
  for (int i = 1; i <= 5; ++i) {
    std::size_t at = page.find("<section id=\"section-" + std::to_string(i) + "\">");
    ASSERT_NE(at, std::string::npos) << i;
    EXPECT_GT(at, last);
    last = at;
  }
  EXPECT_EQ(count(page, "<section "), 5);
}

TEST_F(ReportTest, EveryFigureIsShownOnce) {
  std::string page = html();
  for (const SectionSpec& spec : worklog_sections())
    for (std::string_view name : spec.figures)
      EXPECT_EQ(count(page, "id=\"figure-" + std::string(name) + "\""), 1) << name;
}

TEST_F(ReportTest, FiguresWhoseMarkersWereDeletedStandAtTheEndOfTheirSection) {
  std::string text =
      std::regex_replace(testing::fixture_worklog(Where::kGpu), std::regex("<!-- capstone:[a-z-]+ -->"), "");
  std::string page = html_of(text);
  std::size_t versions = page.find("id=\"figure-versions\""), two = page.find("id=\"section-2\""),
              three = page.find("id=\"section-3\"");
  EXPECT_GT(versions, two);
  EXPECT_LT(versions, three);
  EXPECT_EQ(count(render().at("worklog.md"), "### Every version"), 1);
}

TEST_F(ReportTest, AMissingSectionIsStillThereWithANote) {
  std::string page = html_of("## The by-hand attempt\n\nOnly this.\n");
  EXPECT_EQ(count(page, "This section is not in the student's worklog"), 4);
  EXPECT_TRUE(has(page, "id=\"figure-stuck\""));
}

TEST_F(ReportTest, PlaceholdersAreFilledInEverywhereButInCode) {
  std::string page = html_of(
      "## The head-to-head\n\nMine has {{v4.speedup}}, and `{{v4.speedup}}` stays.\n\n| a |\n|--|\n| "
      "{{v2.speedup}} |\n\n- {{best.llm.speedup}}\n");
  EXPECT_TRUE(
      has(page, "Mine has <span class=\"ledger\">2.31x</span>, and <code>{{v4.speedup}}</code> stays."));
  EXPECT_TRUE(has(page, "<td><span class=\"ledger\">1.62x</span></td>"))
      << page.substr(page.find("Mine has"), 900);
  EXPECT_TRUE(has(page, "<span class=\"ledger\">1.88x</span>"));
  std::string markdown = render().at("worklog.md");
  EXPECT_TRUE(has(markdown, "Mine has 2.31x, and `{{v4.speedup}}` stays."));
}

TEST_F(ReportTest, CountsOfAnExplanationStandInTheWorklogAndCanBeQuoted) {
  std::string page = html_of(
      "## The by-hand attempt\n\nNow {{v4.sectors}}, {{best.human.moved}} of {{v4.compulsory}}; "
      "{{v4.wavefronts}}; {{v4.floor}}; {{v2.sectors}}.\n");
  std::size_t figure = page.find("id=\"figure-explained-human\"");
  ASSERT_NE(figure, std::string::npos);
  for (const char* part : {"v4 at rows=64, cols=512", "18.0 (ideal 4.0)", "kernel.cu:3", "uncoalesced",
                           "4.5 times the traffic", "Modelled, not measured"})
    EXPECT_NE(page.find(part, figure), std::string::npos) << part;
  EXPECT_TRUE(has(page,
                  "Now <span class=\"ledger\">18.0 (ideal 4.0)</span>, <span class=\"ledger\">1.12 "
                  "MiB</span> of <span class=\"ledger\">390 KiB</span>"));
  EXPECT_TRUE(has(page,
                  "<span class=\"ledger\">none</span>; <span class=\"ledger\">0.119 µs on NVIDIA H100 80GB "
                  "HBM3 (modelled, not measured)</span>"));
  EXPECT_TRUE(has(page, "did you mean")) << "v2 was not explained";
  std::size_t model = page.find("id=\"figure-explained-llm\"");
  ASSERT_NE(model, std::string::npos);
  EXPECT_NE(page.find("Nothing was explained by counts (capstone explain).", model), std::string::npos);
}

TEST_F(ReportTest, ContradictionsAreMarkedWithTheReason) {
  std::string page = html_of("## The head-to-head\n\nMy kernel is 9.9x faster. {{v4.speedip}}\n");
  EXPECT_TRUE(has(page, "<mark title=\"not in the ledger\">9.9x</mark>"));
  EXPECT_TRUE(has(page, "did you mean {{v4.speedup}}?"));
}

TEST_F(ReportTest, QuotedNumbersAreNobodysClaim) {
  EXPECT_FALSE(has(html_of("## The head-to-head\n\n> The paper's kernel is 9.9x faster.\n"), "<mark title"));
}

TEST_F(ReportTest, AStudentCalledScriptIsText) {
  capstone.project.config.members = {{"<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "a@b"}};
  ReportFiles report = render();
  expect_inert(report.at("worklog.html"));
  expect_inert(report.at("score_sheet.html"));
  EXPECT_TRUE(has(report.at("worklog.html"), "&lt;script&gt;alert(1)&lt;/script&gt;"));
}

TEST_F(ReportTest, HostileWorklogIsInert) {
  std::string page = html_of(
      "# </script><script>alert(1)</script>\n\n</style><script>alert(2)</script>\n\n## The by-hand "
      "attempt\n\n</script><script>alert(3)\n\n"
      "<img src=x onerror=alert(4)>\n\n<div onclick=\"alert(5)\">\n\ninline <b onmouseover=alert(6)>raw</b> "
      "HTML\n\n"
      "[click](javascript:alert(7)) [data](data:text/html;base64,PHNjcmlwdD4=) [vb](VBScript:x) "
      "[ok](https://example.org/a)\n\n"
      "![picture](https://evil.example/x.png) "
      "![rel](a.png)\n\n```html\n</code></pre><script>alert(8)</script>\n```\n\n"
      "> Q: <script>alert(9)</script>\n\n<!-- capstone:versions --><script>alert(10)</script>\n\n<svg "
      "onload=alert(11)>\n\n{{<script>alert(12)</script>}}\n");
  expect_inert(page);
  EXPECT_TRUE(has(page, "&lt;b onmouseover=alert(6)&gt;raw&lt;/b&gt;")) << "raw HTML is shown as text";
  EXPECT_TRUE(has(page, "[image: picture (https://evil.example/x.png)]"));
  EXPECT_TRUE(has(page, "<a href=\"https://example.org/a\">ok</a>"));
  EXPECT_FALSE(has(page, "<a href=\"javascript"));
}

TEST_F(ReportTest, AProductOfNumbersIsNoEmphasis) {
  const std::string page = html_of(
      "# W\n\n## The by-hand attempt\n\n16384*4096*4 bytes, `2*3*4`, 8*2*8*2 in *italics*.\n\na*b*c\n");
  EXPECT_TRUE(has(page, "16384*4096*4 bytes, <code>2*3*4</code>, 8*2*8*2 in <em>italics</em>"));
  EXPECT_TRUE(has(page, "a<em>b</em>c")) << "words are left as Markdown has them";
}

TEST_F(ReportTest, HostileLedgerIsInert) {
  const std::string evil = "</td></table><script>alert(1)</script>\"'><img src=x onerror=alert(2)>";
  for (auto* list : {&capstone.ledger.human, &capstone.ledger.llm})
    for (Measurement& m : *list) {
      m.reason = m.isolation = m.gate_two_reason = m.build.log = evil;
      m.environment = {{"device", evil}, {"driver", evil}};
      if (m.build.first_error) m.build.first_error->text = evil;
      for (CaseResult& c : m.cases) c.problem = c.where = evil;
      if (m.measured) {
        m.labels = {evil};
        m.measured->peak = evil;
        for (Arm& arm : m.measured->arms) arm.label = evil;
      }
    }
  for (Attempt& a : capstone.ledger.attempts) a.model = a.settings = a.prompt_difference = a.extracted = evil;
  for (Prediction& p : capstone.ledger.predictions) p.because = p.bottleneck = evil;
  std::ofstream(capstone.project.attempt(1) / "reply.md") << evil;
  capstone.ledger.damage = {evil};
  ReportFiles report = render();
  expect_inert(report.at("worklog.html"));
  expect_inert(report.at("score_sheet.html"));
  EXPECT_TRUE(has(report.at("worklog.html"), "was changed after it was recorded"));
}

TEST_F(ReportTest, NamesOfVersionsCannotCommandGnuplot) {
  const fs::path proof = scratch.path() / "proof";
  for (Measurement& m : capstone.ledger.human)
    m.version += "'; system(\"touch " + proof.string() + "\") #`touch " + proof.string() + "`<g>\t9";
  std::string page = html();
  EXPECT_FALSE(std::filesystem::exists(proof));
  expect_inert(page);
  EXPECT_EQ(count(page, "<svg class=\"plot wide\""), 4);
}

TEST_F(ReportTest, FourPlotsAreInlineSvgWithNamesAndTheirOwnIds) {
  std::string page = html();
  EXPECT_EQ(count(page, "<svg class=\"plot wide\" role=\"img\""), 4);
  EXPECT_EQ(count(page, "<svg class=\"plot narrow\" role=\"img\""), 4);
  for (const char* name : {"climb", "roofline", "samples", "head_to_head"}) {
    EXPECT_TRUE(has(page, std::string("<title id=\"") + name + "_title\">")) << name;
    EXPECT_TRUE(has(page, std::string("<desc id=\"") + name + "_desc\">")) << name;
  }
  std::multiset<std::string> ids;
  std::regex id("\\sid=[\"']([^\"']+)[\"']");
  for (std::sregex_iterator it(page.begin(), page.end(), id), end; it != end; ++it) ids.insert((*it)[1]);
  for (const std::string& name : ids) EXPECT_EQ(ids.count(name), 1u) << name;
}

TEST_F(ReportTest, AResultAboveThePeakIsSeenAsOne) {
  capstone.ledger.llm.back().measured->percent_of_peak = 192;
  capstone.ledger.llm.back().labels = {"needs an explanation: less than the data sheet allows"};
  std::string page = html();
  EXPECT_TRUE(has(page, "attempt-2: needs an explanation: less than the data sheet allows"));
  EXPECT_TRUE(has(page, "192 % of peak")) << "at the head of the page";
  EXPECT_EQ(count(page, ">attempt-2: 1.88x [1.85, 1.91], FASTER, 192.0 % of peak<"), 4)
      << "at its bar and as a tooltip, on a wide page and on a phone";
}

TEST_F(ReportTest, AVersionKeepsItsReasonWhenItIsMeasuredAgain) {
  Measurement again = capstone.ledger.human.back();
  const std::string reason = again.reason;
  again.reason = "once more beside the model";
  testing::add_measurement(capstone, again);
  std::string text = render().at("worklog.md");
  EXPECT_TRUE(has(text, "| **v4** | " + reason)) << text.substr(text.find("### Every version"), 800);
}

TEST_F(ReportTest, PlotsUseThePagesColours) {
  std::string page = html();
  std::string svg = page.substr(page.find("<svg class=\"plot "));
  EXPECT_TRUE(has(svg, "var(--human)"));
  EXPECT_TRUE(has(svg, "var(--plot-ink)"));
  EXPECT_FALSE(std::regex_search(svg, std::regex("(stroke|fill|color)=[\"'](rgb|black|white|#)")));
}

TEST_F(ReportTest, LoadsNothingFromAnywhere) {
  std::string page =
      std::regex_replace(html(), std::regex("xmlns(:xlink)?=\"http://www.w3.org/[^\"]*\""), "");
  EXPECT_FALSE(has(page, "http://"));
  EXPECT_FALSE(has(page, "https://"));
  EXPECT_TRUE(has(page, "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'"));
}

TEST_F(ReportTest, WithoutGnuplotTheTablesRemain) {
  resources.path_variable = scratch.path().string();
  std::string page = html();
  EXPECT_EQ(count(page, "<svg class=\"plot"), 0);
  EXPECT_TRUE(has(page, "install gnuplot to see the plots"));
  EXPECT_TRUE(has(page, "id=\"figure-versions\""));
}

TEST_F(ReportTest, WithoutAGpuCountsStandWhereTimesWould) {
  go_emulated();
  testing::add_versions(capstone, 8, Where::kEmulated);
  const ReportFiles report = render();
  const std::string& page = report.at("worklog.html");
  EXPECT_TRUE(has(page, "not judged here (no GPU)"));
  EXPECT_FALSE(has(page, "FASTER"));
  for (const char* column : {"Traffic", "Of the minimum", "Sectors", "Conflicts", "FLOP", "Bound"})
    EXPECT_TRUE(has(page, std::string("class=\"number\">") + column + "</th>")) << column;
  EXPECT_FALSE(has(page, "Median [95 %]"));
  for (const char* part :
       {"<title id=\"counts_title\">Counted on the CPU at rows=64, cols=512, not timed",
        "Global memory traffic [MiB]: 1.12 MiB to 1.04 MiB (dashed: the problem needs 390 KiB)",
        "Sectors per request of a warp: 18.0 to", "Bank conflicts (extra wavefronts): 0 to 3120",
        "Modelled bound on time", "what the problem needs: 390 KiB", "<title>v8: 1.04 MiB</title>",
        "No counts at these sizes: v1, v2. `capstone explain` counts the current kernel."})
    EXPECT_TRUE(has(page, part)) << part;
  EXPECT_FALSE(has(page, "id=\"samples_title\"") || has(page, "id=\"climb_title\""));
}

TEST_F(ReportTest, EmulatedTimesAreInNoTableAndInNoPlot) {
  go_emulated();
  const ReportFiles report = render();
  const std::string& page = report.at("worklog.html");
  int versions = 0;
  for (const auto* list : {&capstone.ledger.human, &capstone.ledger.llm})
    for (const Measurement& m : *list) {
      if (!m.measured) continue;
      ++versions;
      const std::string time = format_time_ms(m.measured->arms.back().median_ms.point);
      // Prose may quote one, with its name.
      EXPECT_EQ(count(page, time), count(page, time + " (emulated)")) << time;
    }
  EXPECT_EQ(versions, 4);
}

TEST_F(ReportTest, WithoutCountsTheReportSaysHowToGetThem) {
  go_emulated();
  capstone.ledger.explanations.clear();
  const std::string page = html();
  EXPECT_TRUE(has(page, "No version has counts. `capstone measure` without --quick records them"));
  EXPECT_EQ(count(page, "<svg class=\"plot"), 0);
}

TEST_F(ReportTest, ALabelOfManyVersionsIsOneNoteAndEmptyColumnsAreLeftOut) {
  go_emulated();
  capstone.ledger.explanations.clear();
  for (Measurement& m : capstone.ledger.human) m.labels = {"similar: to the rung"};
  const std::string page = html();
  EXPECT_EQ(count(page, "similar: to the rung"), 1);
  EXPECT_FALSE(has(page, ">Of the minimum<"));
}

TEST_F(ReportTest, CountsAtOtherSizesAreNotComparedWithTheRest) {
  go_emulated();
  testing::add_versions(capstone, 8, Where::kEmulated);
  Explanation other = capstone.ledger.explanations.back();
  other.sizes = {{"rows", 8}, {"cols", 64}};
  other.total.global.units = 77;
  capstone.ledger.explanations.push_back(other);
  const std::string page = html();
  EXPECT_TRUE(has(page, "<title>v8: 1.04 MiB</title>"));
  EXPECT_TRUE(has(page, "v8 at ")) << "line by line";
  EXPECT_FALSE(has(page, "v8 at rows=8, cols=64")) << "next to versions at other sizes";
}

// One text of a plot, as a box [px].
struct TextBox {
  std::string text;
  double left, right, top, bottom;
};

// Those that are not rotated.
std::vector<TextBox> text_boxes(const std::string& svg) {
  static const std::regex each(
      "translate\\(([-0-9.]+),([-0-9.]+)\\)\"[^>]*font-size=\"([0-9.]+)\"[^>]*text-anchor=\"([a-z]+)\">\\s*<"
      "text>("
      "?:<tspan[^>]*>)?([^<]*)");
  std::vector<TextBox> boxes;
  for (std::sregex_iterator it(svg.begin(), svg.end(), each), end; it != end; ++it) {
    const double x = std::stod((*it)[1]), y = std::stod((*it)[2]), size = std::stod((*it)[3]);
    const std::string anchor = (*it)[4], text(trim((*it)[5].str()));
    const double width = 0.55 * size * static_cast<double>(text.size());
    const double left = anchor == "start" ? x : anchor == "end" ? x - width : x - width / 2;
    boxes.push_back({text, left, left + width, y - 0.7 * size, y});
  }
  return boxes;
}

// Every plot of a page: no text lies over another one, none is cut off.
void expect_legible(const std::string& page) {
  static const std::regex plot("<svg class=\"plot [a-z]+\" role=\"img\" viewBox=\"0 0 (\\d+) (\\d+)\"");
  int texts = 0;
  for (std::sregex_iterator it(page.begin(), page.end(), plot), end; it != end; ++it) {
    const auto begin = static_cast<std::size_t>(it->position());
    const auto boxes = text_boxes(page.substr(begin, page.find("</svg>", begin) - begin));
    texts += static_cast<int>(boxes.size());
    for (std::size_t a = 0; a < boxes.size(); ++a) {
      EXPECT_TRUE(boxes[a].left >= -4 && boxes[a].right <= std::stod((*it)[1]) + 4 && boxes[a].top >= 0 &&
                  boxes[a].bottom <= std::stod((*it)[2]))
          << boxes[a].text << " is cut off in " << it->str();
      for (std::size_t b = 0; b < a; ++b)
        EXPECT_FALSE(boxes[a].left < boxes[b].right && boxes[b].left < boxes[a].right &&
                     boxes[a].top < boxes[b].bottom && boxes[b].top < boxes[a].bottom)
            << boxes[a].text << " lies over " << boxes[b].text << " in " << it->str();
    }
  }
  EXPECT_GT(texts, 40);
}

TEST_F(ReportTest, FiftyVersionsAreLegibleOnAWidePageAndOnAPhone) {
  testing::add_versions(capstone, 50);
  const std::string page = html();
  expect_legible(page);
  const std::size_t climb = page.find("<title id=\"climb_title\">");
  const std::string svg = page.substr(climb, page.find("</svg>", climb) - climb);
  for (const char* tic : {"v1", "v5", "v25", "v50"})
    EXPECT_TRUE(std::regex_search(svg, std::regex(std::string("<text>\\s*") + tic + "\\s*</text>"))) << tic;
  EXPECT_FALSE(std::regex_search(svg, std::regex("<text>\\s*v26\\s*</text>")));
  EXPECT_TRUE(has(svg, "<title>v26: ")) << "what has no label has a tooltip";
  EXPECT_TRUE(has(svg, "<title>v12: WRONG</title>"));
  EXPECT_TRUE(has(svg, ">v47: 7.03x<")) << "the best version has one";
  for (const char* part : {"<td class=\"text\">v26</td>", "<title id=\"counts_title\">"})
    EXPECT_TRUE(has(page, part)) << part;
}

TEST_F(ReportTest, FiftyVersionsWithoutAGpuAreLegible) {
  go_emulated();
  testing::add_versions(capstone, 50, Where::kEmulated);
  const std::string page = html();
  expect_legible(page);
  EXPECT_TRUE(has(page, "Gate two, v1, v2, v4 to v11, v13 to v20, ")) << "neighbours are a run";
  EXPECT_TRUE(has(page, "<td class=\"wide plain normal\">v1 to v4, attempt-1, attempt-2, v5 to v50</td>"))
      << "how it was judged fits the page";
}

TEST_F(ReportTest, FewVersionsAreLegible) {
  expect_legible(html());
  go_emulated();
  expect_legible(html());
}

TEST_F(ReportTest, VersionsWithoutASourceAreNamedInOneLine) {
  testing::add_versions(capstone, 50);
  const std::string page = html();
  EXPECT_TRUE(has(page, "What changed in v2 to v50 cannot be shown: the source of v1 is missing"));
  EXPECT_EQ(count(page, "the source of "), 1);
}

TEST_F(ReportTest, OnlyTheBestAndTheLastVersionsAreExplainedLineByLine) {
  testing::add_versions(capstone, 50);
  const std::string page = html();
  EXPECT_EQ(count(page, "at rows=64, cols=512</h4>"), 3);
  EXPECT_TRUE(has(page, "The ledger has "));
}

TEST_F(ReportTest, FailuresAreListedHonestly) {
  std::string page = html();
  EXPECT_TRUE(has(page, "DOES NOT BUILD"));
  EXPECT_TRUE(has(page, "identifier &quot;warp_sum&quot; is undefined"));
  EXPECT_TRUE(has(page, "only the tail of each row is wrong"));
  EXPECT_TRUE(has(page, "3 of 387 elements of y"));
}

TEST_F(ReportTest, PlotsThatWereDrawnBeforeAreUsedAgain) {
  std::vector<Plot> plots;
  ReportInput input{&capstone.project, &capstone.ledger, &resources, std::nullopt, ""};
  input.plots = &plots;
  const std::string first = render_report(input)->at("worklog.html");
  ASSERT_FALSE(plots.empty());
  resources.path_variable = scratch.path().string();  // gnuplot is not needed any more
  EXPECT_EQ(render_report(input)->at("worklog.html"), first);
}

TEST_F(ReportTest, AFailureShowsWhereItsWrongElementsLie) {
  const ReportFiles report = render();
  const std::string& page = report.at("worklog.html");
  EXPECT_EQ(count(page, "<svg class=\"map\" role=\"img\" aria-label=\""), 2);  // v3 and attempt-1
  EXPECT_TRUE(
      has(page,
          "A map of 3 lines and 43 columns. Of 129 cells, 0 are wrong entirely and 3 partly; they lie "
          "in lines 1 to 3 and column 43."));
  EXPECT_TRUE(has(page, "<path class=\"wrong-1\" d=\"M336 0h8v16h-8zM336 16h8v16h-8zM336 32h8v16h-8z\"/>"))
      << "the last cell of each line";
  EXPECT_FALSE(has(page, "<path class=\"wrong-4\" d=\"M336"));
  EXPECT_TRUE(has(page, "Where the wrong elements are (y, 1 x 3 elements a cell)"));
  std::string line;
  for (int cell = 0; cell < 42; ++cell) line += "·";
  line += "░\n";
  EXPECT_TRUE(has(report.at("worklog.md"),
                  "Where the wrong elements are (y, 1 x 3 elements a cell: · right, ░▒▓ "
                  "some wrong, █ all wrong):\n\n```text\n" +
                      line + line + line + "```\n"));
}

TEST_F(ReportTest, AMapOfAnythingElseIsDrawnAsCellsAndNoMore) {
  Diagnosis& d = *capstone.ledger.human[3].cases.front().diagnosis;
  d.map = {"█<script>\"·", "", std::string(100000, '`')};
  for (int line = 0; line < 1000; ++line) d.map.push_back("▓");
  d.map_of = "<img src=x>";
  const ReportFiles report = render();
  const std::string& page = report.at("worklog.html");
  EXPECT_TRUE(has(page, "A map of 16 lines and 64 columns."));
  EXPECT_FALSE(has(page, "<script"));
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_TRUE(has(report.at("worklog.md"), "█         ·\n"));
}

TEST_F(ReportTest, AFailureWithoutAMapHasNone) {  // a record of before there were maps
  for (auto* list : {&capstone.ledger.human, &capstone.ledger.llm})
    for (Measurement& m : *list)
      for (CaseResult& c : m.cases)
        if (c.diagnosis) c.diagnosis->map.clear();
  EXPECT_FALSE(has(html(), "class=\"map\""));
}

TEST_F(ReportTest, CodeKeepsItsLines) {
  std::string page = html();
  std::size_t pre = page.find("<details open=\"open\"><summary>problem/reference.py");
  ASSERT_NE(pre, std::string::npos);
  EXPECT_GT(count(page.substr(pre, page.find("</pre>", pre) - pre), "\n"), 10);
}

TEST_F(ReportTest, ThePromptAndReplyAreExact) {
  std::string page = html();
  EXPECT_TRUE(has(page, "Write one CUDA file that defines `launch`."));
  EXPECT_TRUE(has(page, "-Write one CUDA file.\n+Write one CUDA file. Mind ragged row lengths."));
  EXPECT_FALSE(has(page, "was changed after it was recorded"));
}

TEST_F(ReportTest, AWorklogOfBrokenBytesIsStillAPage) {
  std::string page = html_of("## The by-hand attempt\n\n\xFF\xFE broken \xC3\n");
  EXPECT_TRUE(is_utf8(page));
  EXPECT_TRUE(has(page, "\xEF\xBF\xBD"));
}

TEST_F(ReportTest, AnEmptyProjectIsStillAPage) {
  capstone.ledger = LedgerView{};
  ReportFiles report = render();
  EXPECT_EQ(count(report.at("worklog.html"), "<section "), 5);
  EXPECT_TRUE(has(report.at("worklog.html"), "No prediction was recorded."));
}

TEST_F(ReportTest, MarkdownTablesSurvivePipesAndNewlines) {
  capstone.ledger.human[2].reason = "a | b\n| c | <script>";
  std::string markdown = render().at("worklog.md");
  EXPECT_TRUE(has(markdown, "| a \\| b \\| c \\| \\<script\\> |"));
}

TEST_F(ReportTest, TheSamePageTwice) { EXPECT_EQ(html(), html()); }

TEST_F(ReportTest, StudentsSeeEvidenceAndMentorsASuggestion) {
  Result<Rubric> rubric = load_rubric(resources.share / "rubric" / "rubric.yaml");
  ASSERT_TRUE(rubric);
  ScoreSheet sheet =
      score(*rubric, capstone.project, capstone.ledger, parse_worklog(testing::fixture_worklog(Where::kGpu)));
  auto student = render_score_sheet(input(), sheet, Audience::kStudent),
       mentor = render_score_sheet(input(), sheet, Audience::kMentor);
  ASSERT_TRUE(student && mentor);
  ASSERT_EQ(student->size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(std::regex_search((*student)[i].bytes, std::regex("suggested", std::regex::icase)))
        << (*student)[i].name;
    EXPECT_TRUE(std::regex_search((*mentor)[i].bytes, std::regex("suggested", std::regex::icase)))
        << (*mentor)[i].name;
    EXPECT_TRUE(has((*student)[i].bytes, "passed gate one")) << (*student)[i].name;
  }
  Json json = Json::parse((*mentor)[2].bytes);
  EXPECT_EQ(json["criteria"].size(), 4u);
  EXPECT_EQ(json["suggested"], 100);
}

TEST_F(ReportTest, HintsStandWhereTheVersionsDoAndCostNoMarks) {
  const Rubric rubric = load_rubric(resources.share / "rubric" / "rubric.yaml").value();
  const Worklog worklog = parse_worklog(testing::fixture_worklog(Where::kGpu));
  const ScoreSheet without = score(rubric, capstone.project, capstone.ledger, worklog);
  EXPECT_TRUE(without.facts.empty());
  EXPECT_FALSE(has(render().at("worklog.md"), "hint 1"));
  capstone.ledger.hints = {{1, 3, "f", "2026-03-02T10:00:00Z", "v1", "v2"},
                           {2, 3, "f", "2026-03-04T10:00:00Z", "v4"}};
  const ScoreSheet with = score(rubric, capstone.project, capstone.ledger, worklog);
  EXPECT_EQ(with.suggested, without.suggested);
  ReportFiles report = render();
  for (const char* page : {"worklog.md", "worklog.html"}) {
    const std::string text = report.at(page);
    const std::size_t at =
        text.find("The author took hint 1 of 3, after v1 and before v2 (2026-03-02 10:00 UTC)");
    EXPECT_NE(at, std::string::npos) << page;
    EXPECT_GT(at, text.find("Every version")) << page;
    EXPECT_LT(at, text.find("From version to version")) << page;
    EXPECT_TRUE(has(text, "The author took hint 2 of 3, after v4 (2026-03-04 10:00 UTC)")) << page;
  }
  for (const Audience audience : {Audience::kStudent, Audience::kMentor}) {
    const auto sheet = render_score_sheet(input(), with, audience).value();
    for (const ReportFile& file : sheet) {
      EXPECT_TRUE(has(file.bytes, "hint 1 of 3, after v1 and before v2 (2026-03-02 10:00 UTC); hint 2 of 3"))
          << file.name;
      EXPECT_TRUE(has(file.bytes, "They cost no marks")) << file.name;
    }
  }
}

TEST_F(ReportTest, FilesAreWrittenWhole) {
  fs::path folder = scratch.path() / "report";
  ASSERT_TRUE(write_report(render(), folder));
  for (const char* name :
       {"worklog.md", "worklog.html", "score_sheet.md", "score_sheet.html", "score_sheet.json"})
    EXPECT_GT(fs::file_size(folder / name), 1000u) << name;
}

TEST_F(ReportTest, WhatCouldNotBeJudgedIsNotCalledAFailure) {
  Measurement m = capstone.ledger.llm.back();
  m.version = "attempt-9";
  m.gate_one = GateOne::kNotJudgeable;
  m.gate_two = GateTwo::kNotJudged;
  m.cases = {};
  CaseResult reason;
  reason.id = "build";
  reason.problem = "needs a GPU";
  m.cases.push_back(reason);
  testing::add_measurement(capstone, m);
  Attempt a = capstone.ledger.attempts.back();
  a.number = 9;
  capstone.ledger.attempts.push_back(a);
  const std::string text = render().at("worklog.md");
  const std::string part = text.substr(text.find("Attempt 9"));
  EXPECT_NE(part.find("Compiled on the first try: not judged here"), std::string::npos) << part;
  EXPECT_NE(part.find("Correct on the first try: not judged here"), std::string::npos);
  EXPECT_NE(part.find("Why not: needs a GPU"), std::string::npos);
}

TEST_F(ReportTest, ThePageSaysWhichPromptAnAttemptHad) {
  ASSERT_EQ(capstone.ledger.attempts.size(), 2u);
  capstone.ledger.attempts[0].feedback_on = "";
  capstone.ledger.attempts[0].prompt_difference = "";
  capstone.ledger.attempts[1].feedback_on = "attempt-1";
  capstone.ledger.attempts[1].prompt_difference = "--- a\n+++ b\n@@ -1 +1,2 @@\n-x\n+y\n+z\n";
  EXPECT_NE(render().at("worklog.md").find("Prompt: the standard prompt, unchanged"), std::string::npos);
  EXPECT_NE(render()
                .at("worklog.md")
                .find("the standard prompt with feedback on attempt-1, changed: 2 lines added, 1 removed"),
            std::string::npos);
  const std::string sheet = render().at("score_sheet.md");
  EXPECT_NE(sheet.find("the standard prompt was changed for attempt-2"), std::string::npos) << sheet;
}

TEST_F(ReportTest, ASearchIsTabledAndIsNoAttempt) {
  Record record;
  record.kind = "search";
  record.body = Json{{"run", "sample-1"},
                     {"provider", "a <model>"},
                     {"kernels", 32},
                     {"correct", 7},
                     {"ended", "the search is complete"}};
  capstone.ledger.records.push_back(record);
  record.body["correct"] = 9;  // a second sitting
  capstone.ledger.records.push_back(record);
  const std::string text = render().at("worklog.md");
  EXPECT_NE(text.find("Searches with a model"), std::string::npos);
  EXPECT_NE(text.find("| sample-1 |"), std::string::npos) << text.substr(text.find("Searches"), 600);
  EXPECT_NE(text.find("| 9 |"), std::string::npos);
  EXPECT_EQ(render().at("worklog.html").find("a <model>"), std::string::npos);
}

}  // namespace
}  // namespace capstone
