// Texts from outside on a terminal: names, labels and messages of students may hold escape sequences, which a
// terminal obeys. Whatever prints them, none arrives.
#include <algorithm>

#include "cli/terminal.h"
#include "harness/base/text.h"
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

const std::string kTitle = "\x1b]0;owned\x07", kClear = "\x1b[2J", kHidden = "\x1b[8m",
                  kC1 =
                      "\xc2\x9b"
                      "2J";

using cli::Table;
using cli::Terminal;
using cli::Tone;

// Only printable characters, tabs and line ends; in UTF-8 also none of U+0080 to U+009F.
testing::AssertionResult is_tame(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool c1 = c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if ((c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f || c1)
      return testing::AssertionFailure() << "byte " << int(c) << " at " << i << " of: " << text.substr(0, i);
  }
  return testing::AssertionSuccess();
}

std::string printed(const std::function<void(const Terminal&)>& print) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  print(Terminal{});
  return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
}

TEST(Printing, EveryWayToPrintMakesItPrintable) {
  const std::string evil = "a" + kTitle + kClear + kHidden + kC1 + "\x7f\rz\xff";
  for (const auto& text :
       {printed([&](const Terminal& t) { t.out(evil); }), printed([&](const Terminal& t) { t.say(evil); }),
        printed([&](const Terminal& t) { t.progress(evil); }),
        printed([&](const Terminal& t) { t.out(t.paint(Tone::kGood, evil)); })}) {
    EXPECT_TRUE(is_tame(text));
    EXPECT_TRUE(says(text, "z"));
  }
  EXPECT_EQ(printed([](const Terminal& t) { t.out("µs\t→ 1,5\r\n\"x\""); }), "µs\t→ 1,5\r\n\"x\"\n");
  // The name of a library file that the kernel loaded, as a label has it.
  EXPECT_TRUE(is_tame(printed([&](const Terminal& t) {
    t.out("library: libcublas" + kTitle + ".so was loaded by the kernel's process");
  })));
}

TEST(Printing, ALineEndInANameMakesNoRow) {
  Table table({"name", "state"});
  table.row({"eve\nada  graded", "failed"});
  EXPECT_EQ(printed([&](const Terminal& t) { t.out(table.text(t)); }),
            "name             state\neve ada  graded  failed\n");
}

// A column of long words is not made narrower than they are; one that has spaces is.
TEST(Printing, ATableFoldsWhereItCan) {
  Table table({"problem", "kernel", "class"});
  table.row({"Convolution and ReLU and the largest of four neighbours", std::string(40, 'k'), "fp32"});
  std::string kept;
  const std::string text = printed([&](Terminal t) {
    t.keep_in(kept);
    t.out(table.text(t));
  });
  for (const std::string& line : split(text, '\n')) EXPECT_LE(cli::display_width(line), 80u) << line;
  EXPECT_TRUE(says(text, std::string(40, 'k') + "  fp32\n"));
  EXPECT_EQ(kept, text);
}

class OutsideText : public CliTest {
 protected:
  void expect_tame(const std::vector<std::string>& words, const fs::path& cwd,
                   const std::string& part) const {
    const Outcome piped = capstone(words, {.cwd = cwd});
    EXPECT_TRUE(is_tame(piped.both()));
    EXPECT_TRUE(says(piped.both(), part));
    EXPECT_NE(piped.code, 70) << piped;
    EXPECT_TRUE(is_tame(without_own(on_terminal(words, 200, 50, {.cwd = cwd})))) << words.front();
  }
};

TEST_F(OutsideText, AMembersNameReachesNoMentorsTerminal) {
  const fs::path eve = project("in/eve", "01", "vector_add");
  const std::string name = R"("E\e]0;owned\a\e[2J\u009b2Jve\nada graded")";
  std::string config = slurp(eve / "capstone.yaml");
  const std::size_t at = config.find("\"Ada Lovelace\"");
  ASSERT_NE(at, std::string::npos) << config;
  spit(eve / "capstone.yaml", config.replace(at, 14, name));
  fs::create_directories(home_ / "c");
  ASSERT_EQ(
      capstone({"checkin", "--stuck", "why" + kTitle + "not", "--out", (home_ / "c" / "eve.json").string()},
               {.cwd = eve})
          .code,
      0);
  expect_tame({"grade", "in", "--out", "graded", "--backend", "emulated", "--hidden", "0", "--quick"}, home_,
              "graded");
  expect_tame({"gradebook", "graded"}, home_, "ve ada graded");
  expect_tame({"gradebook", "graded", "--format", "csv"}, home_, "ve");
  expect_tame({"gradebook", "graded", "--format", "json"}, home_, "ve");
  expect_tame({"gradebook", "graded", "--progress", "c"}, home_, "ve");
  expect_tame({"appeal", "eve"}, home_, "ve");
  expect_tame({"certificate", "--all", "--course", "GPU", "--signatory", "Grace"}, home_, "ve");
  expect_tame({"check"}, eve, "worklog");
}

TEST_F(OutsideText, AModelsNameReachesNoTerminal) {
  const fs::path root = project();
  spit(root / "reply.md", "no code" + kTitle + "\n");
  expect_tame({"llm", "add", "reply.md", "--model", "gpt" + kTitle + kClear + "5"}, root, "gpt");
  expect_tame({"ledger"}, root, "by gpt");
  expect_tame({"ledger", "--format", "json"}, root, "gpt");
}

TEST_F(OutsideText, NamesInAKernelReachNoTerminal) {
  const fs::path root = project_with(
      "#line 1 \"a\x1b]0;owned\x07"
      "b.cu\"\n#error \x1b[2J gone\n#include \"x\x1b]0;owned\x07.h\"\n");
  expect_tame({"measure", "--backend", "emulated", "--hidden", "0", "--quick", "--verbose"}, root,
              "DOES NOT BUILD");
  // On the record is what did compile; this model's code did not.
  spit(root / "reply.md",
       "```cuda\n" + slurp(root / "human" / "kernel.cu") + "extern \"C\" void launch() {}\n```\n");
  expect_tame({"llm", "add", "reply.md", "--model", "m", "--backend", "emulated", "--quick"}, root,
              "DOES NOT BUILD");
  expect_tame({"ledger"}, root, "DOES NOT BUILD");
}

}  // namespace
}  // namespace capstone::cli_test
