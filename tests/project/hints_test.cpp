// Hints: what the catalogue offers, how a file of hints is read, and which hint comes next.
#include "harness/project/hints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

Resources of_source() {
  Resources resources;
  resources.share = fs::path(CAPSTONE_PROBLEMS).parent_path();
  return resources;
}

std::size_t words_of(const std::string& text) {
  std::size_t words = 0;
  for (const std::string& word : split(replace_all(text, "\n", " "), ' ')) words += !word.empty();
  return words;
}

TEST(HintsOfTheCatalogue, EveryProblemHasThreeOfAReadableLength) {
  const auto catalogue = load_catalogue(CAPSTONE_PROBLEMS);
  ASSERT_TRUE(catalogue) << render(catalogue.error());
  for (const Problem& problem : *catalogue) {
    const auto hints = hints_of(problem, of_source());
    ASSERT_TRUE(hints) << render(hints.error());
    ASSERT_EQ(hints->size(), static_cast<std::size_t>(kHintLevels)) << problem.id;
    for (const std::string& hint : *hints) {
      EXPECT_GE(words_of(hint), 40u) << problem.id << ": " << hint;
      EXPECT_LE(words_of(hint), 125u) << problem.id << ": " << hint;
    }
    EXPECT_NE(hints->front().find('?'), std::string::npos) << problem.id << ": the first hint asks";
    for (const char* command : {"`capstone try`", "`capstone explain`"})
      EXPECT_NE(hints->back().find(command), std::string::npos)
          << problem.id << ": the plan says how to check it with " << command;
  }
}

TEST(HintsOfTheCatalogue, NoneHoldsAKernel) {
  for (const auto& entry : fs::directory_iterator(fs::path(CAPSTONE_PROBLEMS) / "hints")) {
    const std::string text = slurp(entry.path());
    for (const char* code : {"__global__", "void launch(", "<<<", "#include", "\n    for"})
      EXPECT_EQ(text.find(code), std::string::npos) << entry.path() << ": " << code;
    std::size_t fenced = 0;
    bool inside = false;
    for (const std::string& line : split(text, '\n')) {
      const bool fence = line.starts_with("```");
      inside ^= fence;
      fenced = fence || !inside ? 0 : fenced + 1;
      EXPECT_LE(fenced, 6u) << entry.path() << ": " << line;
    }
  }
}

TEST(HintsOfTheCatalogue, EachFileBelongsToAProblemAndLiesInNoDefinition) {
  const auto catalogue = load_catalogue(CAPSTONE_PROBLEMS).value();
  std::set<std::string> ids;
  for (const Problem& problem : catalogue) {
    ids.insert(problem.id + ".md");
    EXPECT_FALSE(fs::exists(problem.folder / "hints.md")) << "verdicts are bound to the folder's digest";
  }
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(fs::path(CAPSTONE_PROBLEMS) / "hints"))
    files.insert(entry.path().filename());
  EXPECT_EQ(files, ids);
}

TEST(Hints, AParagraphAndAnItemAreOneLineEach) {
  const auto hints = parse_hints(
      "# Hints\n\nfor mentors\n\n## Hint 1\n\nTwo\nlines.\n\nAnd\n64. more.\n\n## Hint 2\n\nA list:\n1. "
      "one\n   goes "
      "on\n2. two\n- three\n\n## Hint 3\n\n```\n  code\nis kept\n```\nafter\n",
      "hints.md");
  ASSERT_TRUE(hints) << render(hints.error());
  EXPECT_EQ((*hints)[0], "Two lines.\n\nAnd 64. more.");
  EXPECT_EQ((*hints)[1], "A list:\n1. one goes on\n2. two\n- three");
  EXPECT_EQ((*hints)[2], "```\n  code\nis kept\n```\nafter");
}

TEST(Hints, AFileThatHasNotThreeInOrderIsRefusedWithItsPlace) {
  const auto refused = [](const std::string& text) {
    const auto hints = parse_hints(text, "hints.md");
    EXPECT_FALSE(hints) << text;
    if (hints) return std::string();
    EXPECT_NE(hints.error().hint.find("`## Hint 1` to `## Hint 3`"), std::string::npos);
    return hints.error().where + " " + hints.error().what;
  };
  EXPECT_EQ(refused(""), "hints.md:1 0 hints, not 3");
  EXPECT_EQ(refused("## Hint 1\na\n## Hint 2\nb\n"), "hints.md:4 2 hints, not 3");
  EXPECT_EQ(refused("## Hint 1\na\n## Hint 3\nb\n"),
            "hints.md:3 `## Hint 3` is not the heading of the next hint");
  EXPECT_EQ(refused("## Hint 1\na\n## Hint 2\nb\n## Hint 3\nc\n## Hint 4\nd\n"),
            "hints.md:7 `## Hint 4` is not the heading of the next hint");
  EXPECT_EQ(refused("## Hint 1\n\n## Hint 2\nb\n## Hint 3\nc\n"), "hints.md:6 hint 1 is empty");
}

TEST(Hints, AProblemsOwnComeBeforeTheCataloguesAndNoneIsAnErrorWithAWayOut) {
  Scratch scratch;
  const Resources resources = resources_in(scratch);
  Problem problem;
  problem.id = "twice";
  problem.folder = scratch / "twice";
  const auto none = hints_of(problem, resources);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "the problem twice has no hints");
  EXPECT_NE(none.error().hint.find("capstone explain"), std::string::npos);
  put(resources.problems() / "hints" / "twice.md", "## Hint 1\nours\n## Hint 2\nb\n## Hint 3\nc\n");
  EXPECT_EQ(hints_of(problem, resources)->front(), "ours");
  put(problem.folder / "hints.md", "## Hint 1\ntheirs\n## Hint 2\nb\n## Hint 3\nc\n");
  EXPECT_EQ(hints_of(problem, resources)->front(), "theirs");
}

TEST(Hints, EachComesAfterTheOneBeforeIt) {
  EXPECT_EQ(hint_to_show(0, 0, 3), 1);
  EXPECT_EQ(hint_to_show(0, 2, 3), 3);
  EXPECT_EQ(hint_to_show(0, 3, 3), 3) << "after the last, the last again";
  EXPECT_EQ(hint_to_show(1, 2, 3), 1) << "again";
  EXPECT_EQ(hint_to_show(3, 2, 3), 3);
  const auto skipped = hint_to_show(3, 1, 3);
  ASSERT_FALSE(skipped);
  EXPECT_EQ(skipped.error().what, "hint 3 comes after hint 2, which was not taken yet");
  EXPECT_EQ(skipped.error().hint, "take hint 2 first: it may be enough");
  EXPECT_EQ(hint_to_show(4, 3, 3).error().what, "there is no hint 4");
  EXPECT_EQ(hint_to_show(-1, 3, 3).error().hint, "hints are numbered from 1 to 3");
}

}  // namespace
}  // namespace capstone
